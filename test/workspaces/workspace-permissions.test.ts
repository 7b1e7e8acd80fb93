import { expect, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { registerUser } from '../../src/accounts/users/users'
import { bearer, signInForTokens } from '../accounts/session-fixtures'
import { type ApiClient, apiClient, type TestResponse } from '../test-tenant'
import { createWorkspaceFixture, type WorkspaceFixture } from './workspace-fixtures'

/** The callers. The last three use API tokens: of a member, with read scopes, and for another workspace. */
const callers = ['anonymous', 'user', 'elsewhere', 'member', 'ws-admin', 'admin', 'api', 'reader', 'bound'] as const
type Caller = (typeof callers)[number]

/** Creates a client for each caller in a fresh tenant, and an invite of a guest. */
async function createCallersFixture() {
  const home = await createWorkspaceFixture()
  const plainUser = await registerUser(home.tenant, { username: 'plain', email: `plain@${home.id}.test` })
  const byToken = async (user: string, more: object = {}) =>
    apiClient(home.origin, { 'x-api-key': (await issueApiToken(home.tenant, user, { nickname: 'x', ...more })).token })
  const signedIn = async (name: 'user' | 'other' | 'editor' | 'admin') =>
    apiClient(home.origin, bearer((await signInForTokens(home, name)).token))
  const clients: Record<Caller, ApiClient> = {
    anonymous: home.anonymous,
    user: await byToken(plainUser._id),
    elsewhere: await signedIn('editor'),
    member: await signedIn('other'),
    'ws-admin': await signedIn('user'),
    admin: await signedIn('admin'),
    api: await byToken(home.users.other),
    reader: await byToken(home.users.user, { scopes: ['workspaces:read', 'encrypted:read'] }),
    bound: await byToken(home.users.editor, { workspace: home.elsewhere }),
  }
  const { body } = await home.as('user').post(`${home.at}/invites`, { email: 'guest@x.test' })
  return { ...home, clients, invite: body._id as string }
}
type CallersFixture = WorkspaceFixture & Awaited<ReturnType<typeof createCallersFixture>>

type Row = [route: string, send: (client: ApiClient, home: CallersFixture) => Promise<TestResponse>, expected: number[]]
//                                                           anonymous user elsewhere member ws-admin admin api reader bound
const rows: Row[] = [
  ['GET /workspaces', (client) => client.get('/workspaces'), [401, 200, 200, 200, 200, 200, 200, 200, 200]],
  [
    'POST /workspaces',
    (client) => client.post('/workspaces', { name: 'x' }),
    [401, 201, 201, 201, 201, 201, 201, 403, 403],
  ],
  ['GET /workspaces/all', (client) => client.get('/workspaces/all'), [401, 403, 403, 403, 403, 200, 403, 403, 403]],
  ['GET /:id', (client, { at }) => client.get(at), [401, 404, 404, 200, 200, 200, 200, 200, 404]],
  ['PUT /:id', (client, { at }) => client.put(at, { name: 'x' }), [401, 404, 404, 403, 200, 200, 403, 403, 404]],
  ['DELETE /:id', (client, { at }) => client.delete(at), [401, 404, 404, 403, 200, 200, 403, 403, 404]],
  [
    'POST /:id/activate',
    (client, { at }) => client.post(`${at}/activate`),
    [401, 404, 404, 200, 200, 200, 200, 403, 404],
  ],
  ['GET /:id/members', (client, { at }) => client.get(`${at}/members`), [401, 404, 404, 200, 200, 200, 200, 200, 404]],
  [
    'POST /:id/members',
    (client, { at, users }) => client.post(`${at}/members`, { userId: users.admin, roles: [] }),
    [401, 404, 404, 403, 201, 201, 403, 403, 404],
  ],
  [
    'PUT /:id/members/:userId',
    (client, { at, users }) => client.put(`${at}/members/${users.other}`, { roles: ['lead'] }),
    [401, 404, 404, 403, 200, 200, 403, 403, 404],
  ],
  [
    'DELETE /:id/members/:userId, another',
    (client, { at, users }) => client.delete(`${at}/members/${users.user}`),
    [401, 404, 404, 403, 409, 409, 403, 403, 404],
  ],
  [
    'DELETE /:id/members/:userId, a plain member',
    (client, { at, users }) => client.delete(`${at}/members/${users.other}`),
    [401, 404, 404, 200, 200, 200, 200, 403, 404],
  ],
  [
    'POST /:id/invites',
    (client, { at }) => client.post(`${at}/invites`, { email: 'new@x.test' }),
    [401, 404, 404, 403, 201, 201, 403, 403, 404],
  ],
  [
    'DELETE /:id/invites/:inviteId',
    (client, { at, invite }) => client.delete(`${at}/invites/${invite}`),
    [401, 404, 404, 403, 200, 200, 403, 403, 404],
  ],
  ['GET /invites', (client) => client.get('/invites'), [401, 200, 200, 200, 200, 200, 200, 200, 200]],
  [
    'POST /invites',
    (client, { workspace }) => client.post('/invites', { workspace, kind: 'accept' }),
    [401, 404, 404, 404, 404, 404, 404, 403, 404],
  ],
  [
    'GET /:id/encrypted',
    (client, { at }) => client.get(`${at}/encrypted`),
    [401, 403, 403, 403, 403, 200, 403, 403, 403],
  ],
  [
    'POST /:id/encrypted',
    (client, { at }) => client.post(`${at}/encrypted`, {}),
    [401, 403, 403, 403, 403, 200, 403, 403, 403],
  ],
  [
    'GET /users/:id/encrypted',
    (client, { users }) => client.get(`/users/${users.other}/encrypted`),
    [401, 403, 403, 403, 403, 200, 403, 403, 403],
  ],
  [
    'POST /users/:id/encrypted',
    (client, { users }) => client.post(`/users/${users.other}/encrypted`, {}),
    [401, 403, 403, 403, 403, 200, 403, 403, 403],
  ],
]

let home = await createCallersFixture()

test.each(rows)(
  '%s returns the listed status to each caller and changes nothing where it rejects',
  async (route, send, expected) => {
    const statuses: Record<string, number> = {}
    for (const caller of callers) {
      const state = async () => JSON.stringify((await home.as('admin').get(home.at)).body)
      const before = await state()
      const { status } = await send(home.clients[caller], home)
      statuses[caller] = status
      if (status >= 400) expect(await state(), caller).toBe(before)
      // The next caller gets a fresh tenant after a write.
      else if (!route.startsWith('GET')) home = await createCallersFixture()
    }
    expect(statuses).toEqual(Object.fromEntries(callers.map((caller, n) => [caller, expected[n]!])))
  },
)
