import { describe, expect, test } from 'bun:test'
import { setRoles } from '../../src/accounts/users/users'
import { bearer, signInForCookie, signInForTokens } from '../accounts/session-fixtures'
import { createThingsFixture, recordStatements } from '../entities/fixtures'
import { WORKSPACE_NOT_FOUND } from '../expectations'
import { type ApiClient, createTestTenant, statusAndCode } from '../test-tenant'
import { waitUntil } from '../wait-until'
import { createWorkspace, createWorkspaceFixture, type WorkspaceFixture } from './workspace-fixtures'

const getActiveWorkspace = async (client: ApiClient) => (await client.get('/me')).body.workspace
const toActiveOffice = (home: WorkspaceFixture, roles: string[]) => ({
  _id: home.workspace,
  name: 'Office',
  roles,
  labels: [],
})

/** Returns a client of a user for each kind of credential. */
async function createClients(home: WorkspaceFixture, name: 'user' | 'other' | 'admin'): Promise<[string, ApiClient][]> {
  const { token } = await signInForTokens(home, name)
  return [
    ['an API token', home.as(name)],
    ['a bearer token', home.anonymous.with(bearer(token))],
    ['a cookie', home.anonymous.with(await signInForCookie(home, name))],
  ]
}

describe('POST /api/workspaces/:id/activate', () => {
  test('an activation makes the workspace the active one of the used credential only', async () => {
    const home = await createWorkspaceFixture()
    const all = await createClients(home, 'user')
    for (const [kind, client] of all) {
      expect([kind, await getActiveWorkspace(client)]).toEqual([kind, null])
      const { status, body } = await client.post(`${home.at}/activate`)
      expect([status, body]).toMatchObject([
        200,
        { _id: home.workspace, name: 'Office', roles: ['admin'], isPrivilegedUser: true },
      ])
      expect([kind, await getActiveWorkspace(client)]).toEqual([kind, toActiveOffice(home, ['admin'])])
    }
    const otherWorkspace = await createWorkspace(home.as('user'), { name: 'Other', labels: ['pro'] })
    const [first, ...rest] = all
    await first![1].post(`/workspaces/${otherWorkspace._id}/activate`)
    expect(await getActiveWorkspace(first![1])).toEqual({
      _id: otherWorkspace._id,
      name: 'Other',
      roles: ['admin'],
      labels: ['pro'],
    })
    for (const [, client] of rest) expect((await getActiveWorkspace(client))._id).toBe(home.workspace)
  })

  test('a workspace can be activated by its members, and by admins of the tenant without roles in it; others get 404', async () => {
    const home = await createWorkspaceFixture()
    for (const [, client] of await createClients(home, 'other')) {
      expect(statusAndCode(await client.post(`/workspaces/${home.elsewhere}/activate`))).toEqual(WORKSPACE_NOT_FOUND)
      expect(await getActiveWorkspace(client)).toBeNull()
    }
    for (const [, client] of await createClients(home, 'admin')) {
      expect((await client.post(`${home.at}/activate`)).status).toBe(200)
      expect(await getActiveWorkspace(client)).toEqual(toActiveOffice(home, []))
    }
    expect(statusAndCode(await home.anonymous.post(`${home.at}/activate`))).toEqual([401, 'UNAUTHENTICATED'])
  })

  test('an active workspace is kept through a refresh of the tokens', async () => {
    const home = await createWorkspaceFixture()
    const { refreshToken, token } = await signInForTokens(home, 'user')
    const client = home.anonymous.with(bearer(token))
    await client.post(`${home.at}/activate`)
    const { body } = await home.anonymous.post('/token/refresh', { refreshToken })
    expect(body.payload.workspace).toEqual(toActiveOffice(home, ['admin']))
    expect(body.payload.user.workspace).toEqual(toActiveOffice(home, ['admin']))
    expect(await getActiveWorkspace(home.anonymous.with(bearer(body.payload.token)))).toEqual(
      toActiveOffice(home, ['admin']),
    )
  })

  test('an active workspace is kept through a refresh of the cookie', async () => {
    const home = await createWorkspaceFixture()
    const client = home.anonymous.with(await signInForCookie(home, 'user'))
    await client.post(`${home.at}/activate`)
    const answer = await client.post('/cookie/refresh')
    expect(answer.body.payload.workspace).toEqual(toActiveOffice(home, ['admin']))
    const cookie = answer.headers.get('set-cookie')!.split(';')[0]!
    expect(await getActiveWorkspace(home.anonymous.with({ cookie }))).toEqual(toActiveOffice(home, ['admin']))
  })
})

describe('POST /api/signin with a workspace', () => {
  test('a sign-in with a workspace activates it for a member; others get 404 WORKSPACE_NOT_FOUND', async () => {
    const home = await createTestTenant()
    const password = 'correct horse'
    const { body } = await home.anonymous.post('/signup', { username: 'ada', password })
    const ada = home.anonymous.with({ cookie: '' })
    const { _id } = await createWorkspace(home.as('user'))
    const signIn = (more: object) => ada.post('/signin', { username: 'ada', password, ...more })
    expect(statusAndCode(await signIn({ workspace: _id }))).toEqual(WORKSPACE_NOT_FOUND)
    expect(statusAndCode(await signIn({ workspace: 'x' }))).toEqual(WORKSPACE_NOT_FOUND)
    await home.as('user').post(`/workspaces/${_id}/members`, { userId: body.payload.user._id, roles: ['lead'] })
    const workspace = { _id, name: 'Office', roles: ['lead'], labels: [] }
    for (const more of [{}, { authType: 'oauth' }]) {
      const { payload } = (await signIn({ workspace: _id, ...more })).body
      expect([payload.workspace, payload.user.workspace]).toEqual([workspace, workspace])
      expect((await signIn(more)).body.payload.workspace).toBeNull()
    }
    const wrong = await ada.post('/signin', { username: 'ada', password: 'wrong horse', workspace: _id })
    expect(statusAndCode(wrong)).toEqual([401, 'INVALID_CREDENTIALS'])
  })
})

describe('an API token for a workspace', () => {
  async function createBoundToken(
    home: WorkspaceFixture,
    workspace: string,
    name: 'user' | 'other' | 'admin' = 'user',
  ) {
    const maker = home.anonymous.with(await signInForCookie(home, name))
    const answer = await maker.post('/me/api-tokens', { nickname: 'bot', workspace })
    return { answer, tokenClient: home.anonymous.with({ 'x-api-key': answer.body.token }) }
  }

  test('an API token for a workspace always acts in it and gets 404 WORKSPACE_NOT_FOUND for others', async () => {
    const home = await createWorkspaceFixture()
    const { answer, tokenClient } = await createBoundToken(home, home.workspace)
    expect(answer.body.apiToken.workspace).toBe(home.workspace)
    expect(await getActiveWorkspace(tokenClient)).toEqual(toActiveOffice(home, ['admin']))
    expect((await tokenClient.post(`${home.at}/activate`)).status).toBe(200)
    const otherWorkspace = await createWorkspace(home.as('user'), { name: 'Other' })
    for (const answer of [
      await tokenClient.post(`/workspaces/${otherWorkspace._id}/activate`),
      await tokenClient.get(`/workspaces/${otherWorkspace._id}`),
      await tokenClient.put(`/workspaces/${otherWorkspace._id}`, { name: 'x' }),
      await tokenClient.delete(`/workspaces/${otherWorkspace._id}`),
    ])
      expect(statusAndCode(answer)).toEqual(WORKSPACE_NOT_FOUND)
    expect((await tokenClient.get('/workspaces?count=1')).body.map(({ _id }: { _id: string }) => _id)).toEqual([
      home.workspace,
    ])
    expect(await getActiveWorkspace(tokenClient)).toEqual(toActiveOffice(home, ['admin']))
  })

  test('an API token of an admin of the tenant for a workspace reaches that workspace only', async () => {
    const home = await createWorkspaceFixture()
    const { tokenClient } = await createBoundToken(home, home.workspace, 'admin')
    expect(await getActiveWorkspace(tokenClient)).toEqual(toActiveOffice(home, []))
    expect((await tokenClient.get('/workspaces/all')).body.map(({ _id }: { _id: string }) => _id)).toEqual([
      home.workspace,
    ])
    expect((await tokenClient.post(`${home.at}/encrypted`, { a: 1 })).status).toBe(200)
    const elsewhere = `/workspaces/${home.elsewhere}`
    for (const answer of [
      await tokenClient.get(elsewhere),
      await tokenClient.get(`${elsewhere}/encrypted`),
      await tokenClient.post(`${elsewhere}/encrypted`, { a: 1 }),
    ])
      expect(statusAndCode(answer)).toEqual(WORKSPACE_NOT_FOUND)
  })

  test('an API token for a workspace cannot create workspaces (403) and cannot see or answer invites to others (404)', async () => {
    const home = await createWorkspaceFixture()
    const { tokenClient } = await createBoundToken(home, home.workspace, 'other')
    const invite = { email: `other@${home.id}.test`, roles: ['admin'] }
    expect((await home.as('editor').post(`/workspaces/${home.elsewhere}/invites`, invite)).status).toBe(201)
    expect(statusAndCode(await tokenClient.post('/workspaces', { name: 'Mine' }))).toEqual([403, 'FORBIDDEN'])
    expect((await tokenClient.get('/invites')).body).toEqual([])
    for (const kind of ['accept', 'decline'])
      expect(statusAndCode(await tokenClient.post('/invites', { workspace: home.elsewhere, kind }))).toEqual([
        404,
        'INVITE_NOT_FOUND',
      ])
    expect((await home.as('other').get('/invites')).body).toHaveLength(1)
    // It gets no stored response of another token of its user under the same idempotency key.
    const key = { 'idempotency-key': 'k' }
    await home.as('other').post(`${home.at}/activate`)
    expect((await home.as('other').post('/workspaces', { name: 'Mine' }, key)).status).toBe(201)
    expect(statusAndCode(await tokenClient.post('/workspaces', { name: 'Mine' }, key))).toEqual([403, 'FORBIDDEN'])
    expect((await home.as('other').get('/workspaces')).body).toHaveLength(2)
  })

  test('POST /api/me/api-tokens gets 404 WORKSPACE_NOT_FOUND for a workspace that the user cannot reach', async () => {
    const home = await createWorkspaceFixture()
    for (const workspace of [home.elsewhere, 'x'])
      expect(statusAndCode((await createBoundToken(home, workspace)).answer)).toEqual(WORKSPACE_NOT_FOUND)
  })

  test('an API token for a workspace gets 401 while its user is not a member, and is deleted with the workspace', async () => {
    const home = await createWorkspaceFixture()
    const { tokenClient } = await createBoundToken(home, home.workspace, 'other')
    expect((await getActiveWorkspace(tokenClient)).roles).toEqual(['member'])
    await home.as('user').delete(`${home.at}/members/${home.users.other}`)
    expect(statusAndCode(await tokenClient.get('/me'))).toEqual([401, 'UNAUTHENTICATED'])
    await home.as('user').post(`${home.at}/members`, { userId: home.users.other, roles: ['lead'] })
    expect((await getActiveWorkspace(tokenClient)).roles).toEqual(['lead'])
    await home.as('user').delete(home.at)
    expect(statusAndCode(await tokenClient.get('/me'))).toEqual([401, 'UNAUTHENTICATED'])
    const otherUser = home.anonymous.with(await signInForCookie(home, 'other'))
    expect(JSON.stringify((await otherUser.get('/me/api-tokens')).body)).not.toContain(home.workspace)
  })
})

describe('the active workspace of a user', () => {
  test('the active workspace reflects changes of roles, name, labels and membership at once', async () => {
    const home = await createWorkspaceFixture()
    const [, , [, client]] = (await createClients(home, 'other')) as [unknown, unknown, [string, ApiClient]]
    const workspaceAdmin = home.as('user')
    await client.post(`${home.at}/activate`)
    expect(await getActiveWorkspace(client)).toEqual(toActiveOffice(home, ['member']))
    await workspaceAdmin.put(`${home.at}/members/${home.users.other}`, { roles: ['lead'] })
    expect(await getActiveWorkspace(client)).toEqual(toActiveOffice(home, ['lead']))
    await workspaceAdmin.put(home.at, { name: 'Shop', labels: ['pro'] })
    expect(await getActiveWorkspace(client)).toEqual({
      _id: home.workspace,
      name: 'Shop',
      roles: ['lead'],
      labels: ['pro'],
    })
    await workspaceAdmin.delete(`${home.at}/members/${home.users.other}`)
    expect(await getActiveWorkspace(client)).toBeNull()
    await workspaceAdmin.post(`${home.at}/members`, { userId: home.users.other, roles: ['lead'] })
    await client.post(`${home.at}/activate`)
    await workspaceAdmin.delete(home.at)
    expect(await getActiveWorkspace(client)).toBeNull()
  })

  test('an admin of the tenant who loses that role loses the active workspace', async () => {
    const home = await createWorkspaceFixture()
    for (const [, client] of await createClients(home, 'admin')) await client.post(`${home.at}/activate`)
    await setRoles(home.tenant, 'user', ['admin'])
    await setRoles(home.tenant, 'admin', ['user'])
    for (const [, client] of await createClients(home, 'admin')) expect(await getActiveWorkspace(client)).toBeNull()
  })

  test('an active workspace adds no statement to a request with a known credential', async () => {
    const home = await createThingsFixture(
      [],
      [{ operation: 'read', scope: 'workspace', workspaceRoleBased: ['admin'] }],
    )
    const { _id } = await createWorkspace(home.as('user'))
    for (const client of [
      home.as('user'),
      home.anonymous.with(bearer((await signInForTokens(home, 'user')).token)),
      home.anonymous.with(await signInForCookie(home, 'user')),
    ]) {
      await client.post(`/workspaces/${_id}/activate`)
      await client.get(home.path)
      // A credential is read again until the version of its last change is known.
      const statements = await waitUntil(
        () => recordStatements(home.origin, () => client.get(home.path)),
        ({ length }) => length === 1,
      )
      expect(statements[0]).toContain('from entities')
    }
  })
})
