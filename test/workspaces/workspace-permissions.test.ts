import { expect, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { registerUser } from '../../src/accounts/users/users'
import { bearer, signInForTokens } from '../accounts/session-fixtures'
import { type ApiClient, apiClient, type TestResponse } from '../test-tenant'
import { createWorkspaceFixture, type WorkspaceFixture } from './workspace-fixtures'

/** Who asks. The last three come by API token: a member's, one that may only read, and one for another workspace. */
const callers = ['stranger', 'user', 'elsewhere', 'member', 'ws-admin', 'admin', 'api', 'reader', 'bound'] as const
type Caller = (typeof callers)[number]

/** Everybody of the matrix in a fresh tenant; a guest is invited, and nobody is active anywhere. */
async function createCallersFixture() {
  const home = await createWorkspaceFixture()
  const plain = await registerUser(home.tenant, { username: 'plain', email: `plain@${home.id}.test` })
  const byToken = async (user: string, more: object = {}) =>
    apiClient(home.origin, { 'x-api-key': (await issueApiToken(home.tenant, user, { nickname: 'x', ...more })).token })
  const signedIn = async (name: 'user' | 'other' | 'editor' | 'admin') =>
    apiClient(home.origin, bearer((await signInForTokens(home, name)).token))
  const who: Record<Caller, ApiClient> = {
    stranger: home.stranger,
    user: await byToken(plain._id),
    elsewhere: await signedIn('editor'),
    member: await signedIn('other'),
    'ws-admin': await signedIn('user'),
    admin: await signedIn('admin'),
    api: await byToken(home.users.other),
    reader: await byToken(home.users.user, { scopes: ['workspaces:read', 'encrypted:read'] }),
    bound: await byToken(home.users.editor, { workspace: home.elsewhere }),
  }
  const { body } = await home.as('user').post(`${home.at}/invites`, { email: 'guest@x.test' })
  return { ...home, who, invite: body._id as string }
}
type CallersFixture = WorkspaceFixture & Awaited<ReturnType<typeof createCallersFixture>>

type Row = [route: string, ask: (who: ApiClient, home: CallersFixture) => Promise<TestResponse>, expected: number[]]
//                                                            stranger user elsewhere member ws-admin admin api reader bound
const rows: Row[] = [
  ['GET /workspaces', (who) => who.get('/workspaces'), [401, 200, 200, 200, 200, 200, 200, 200, 200]],
  ['POST /workspaces', (who) => who.post('/workspaces', { name: 'x' }), [401, 201, 201, 201, 201, 201, 201, 403, 403]],
  ['GET /workspaces/all', (who) => who.get('/workspaces/all'), [401, 403, 403, 403, 403, 200, 403, 403, 403]],
  ['GET /:id', (who, { at }) => who.get(at), [401, 404, 404, 200, 200, 200, 200, 200, 404]],
  ['PUT /:id', (who, { at }) => who.put(at, { name: 'x' }), [401, 404, 404, 403, 200, 200, 403, 403, 404]],
  ['DELETE /:id', (who, { at }) => who.delete(at), [401, 404, 404, 403, 200, 200, 403, 403, 404]],
  ['POST /:id/activate', (who, { at }) => who.post(`${at}/activate`), [401, 404, 404, 200, 200, 200, 200, 403, 404]],
  ['GET /:id/members', (who, { at }) => who.get(`${at}/members`), [401, 404, 404, 200, 200, 200, 200, 200, 404]],
  [
    'POST /:id/members',
    (who, { at, users }) => who.post(`${at}/members`, { userId: users.admin, roles: [] }),
    [401, 404, 404, 403, 201, 201, 403, 403, 404],
  ],
  [
    'PUT /:id/members/:userId',
    (who, { at, users }) => who.put(`${at}/members/${users.other}`, { roles: ['lead'] }),
    [401, 404, 404, 403, 200, 200, 403, 403, 404],
  ],
  [
    'DELETE /:id/members/:userId, another',
    (who, { at, users }) => who.delete(`${at}/members/${users.user}`),
    [401, 404, 404, 403, 409, 409, 403, 403, 404],
  ],
  [
    'DELETE /:id/members/:userId, a plain member',
    (who, { at, users }) => who.delete(`${at}/members/${users.other}`),
    [401, 404, 404, 200, 200, 200, 200, 403, 404],
  ],
  [
    'POST /:id/invites',
    (who, { at }) => who.post(`${at}/invites`, { email: 'new@x.test' }),
    [401, 404, 404, 403, 201, 201, 403, 403, 404],
  ],
  [
    'DELETE /:id/invites/:inviteId',
    (who, { at, invite }) => who.delete(`${at}/invites/${invite}`),
    [401, 404, 404, 403, 200, 200, 403, 403, 404],
  ],
  ['GET /invites', (who) => who.get('/invites'), [401, 200, 200, 200, 200, 200, 200, 200, 200]],
  [
    'POST /invites',
    (who, { workspace }) => who.post('/invites', { workspace, kind: 'accept' }),
    [401, 404, 404, 404, 404, 404, 404, 403, 404],
  ],
  ['GET /:id/encrypted', (who, { at }) => who.get(`${at}/encrypted`), [401, 403, 403, 403, 403, 200, 403, 403, 403]],
  [
    'POST /:id/encrypted',
    (who, { at }) => who.post(`${at}/encrypted`, {}),
    [401, 403, 403, 403, 403, 200, 403, 403, 403],
  ],
  [
    'GET /users/:id/encrypted',
    (who, { users }) => who.get(`/users/${users.other}/encrypted`),
    [401, 403, 403, 403, 403, 200, 403, 403, 403],
  ],
  [
    'POST /users/:id/encrypted',
    (who, { users }) => who.post(`/users/${users.other}/encrypted`, {}),
    [401, 403, 403, 403, 403, 200, 403, 403, 403],
  ],
]

let home = await createCallersFixture()

test.each(rows)(
  '%s answers each caller as it should; where it refuses, nothing has changed',
  async (route, ask, expected) => {
    const told: Record<string, number> = {}
    for (const caller of callers) {
      const state = async () => JSON.stringify((await home.as('admin').get(home.at)).body)
      const before = await state()
      const { status } = await ask(home.who[caller], home)
      told[caller] = status
      if (status >= 400) expect(await state(), caller).toBe(before)
      // What was done is not there for the next one.
      else if (!route.startsWith('GET')) home = await createCallersFixture()
    }
    expect(told).toEqual(Object.fromEntries(callers.map((caller, n) => [caller, expected[n]!])))
  },
)
