import { describe, expect, test } from 'bun:test'
import { setRoles } from '../../src/accounts/users/users'
import { bearer, signInForCookie, signInForTokens } from '../accounts/session-fixtures'
import { createThingsFixture, recordStatements } from '../entities/fixtures'
import { type ApiClient, createTestTenant, statusAndCode } from '../test-tenant'
import {
  createWorkspace,
  createWorkspaceFixture,
  WORKSPACE_NOT_FOUND,
  type WorkspaceFixture,
} from './workspace-fixtures'

const getActiveWorkspace = async (who: ApiClient) => (await who.get('/me')).body.workspace
const toActiveOffice = (home: WorkspaceFixture, roles: string[]) => ({
  _id: home.workspace,
  name: 'Office',
  roles,
  labels: [],
})

/** Somebody by each kind of credential. */
async function createClients(home: WorkspaceFixture, name: 'user' | 'other' | 'admin'): Promise<[string, ApiClient][]> {
  const { token } = await signInForTokens(home, name)
  return [
    ['an API token', home.as(name)],
    ['a bearer token', home.stranger.with(bearer(token))],
    ['a cookie', home.stranger.with(await signInForCookie(home, name))],
  ]
}

describe('activating a workspace', () => {
  test('makes it the active one of the credential, and of no other', async () => {
    const home = await createWorkspaceFixture()
    const all = await createClients(home, 'user')
    for (const [kind, who] of all) {
      expect([kind, await getActiveWorkspace(who)]).toEqual([kind, null])
      const { status, body } = await who.post(`${home.at}/activate`)
      expect([status, body]).toMatchObject([
        200,
        { _id: home.workspace, name: 'Office', roles: ['admin'], isPrivilegedUser: true },
      ])
      expect([kind, await getActiveWorkspace(who)]).toEqual([kind, toActiveOffice(home, ['admin'])])
    }
    const other = await createWorkspace(home.as('user'), { name: 'Other', labels: ['pro'] })
    const [first, ...rest] = all
    await first![1].post(`/workspaces/${other._id}/activate`)
    expect(await getActiveWorkspace(first![1])).toEqual({
      _id: other._id,
      name: 'Other',
      roles: ['admin'],
      labels: ['pro'],
    })
    for (const [, who] of rest) expect((await getActiveWorkspace(who))._id).toBe(home.workspace)
  })

  test('is for members, and for admins of the tenant, who have no roles there', async () => {
    const home = await createWorkspaceFixture()
    for (const [, who] of await createClients(home, 'other')) {
      expect(statusAndCode(await who.post(`/workspaces/${home.elsewhere}/activate`))).toEqual(WORKSPACE_NOT_FOUND)
      expect(await getActiveWorkspace(who)).toBeNull()
    }
    for (const [, who] of await createClients(home, 'admin')) {
      expect((await who.post(`${home.at}/activate`)).status).toBe(200)
      expect(await getActiveWorkspace(who)).toEqual(toActiveOffice(home, []))
    }
    expect(statusAndCode(await home.stranger.post(`${home.at}/activate`))).toEqual([401, 'UNAUTHENTICATED'])
  })

  test('needs no new token: the old one acts there from then on', async () => {
    const home = await createWorkspaceFixture()
    const { refreshToken, token } = await signInForTokens(home, 'user')
    const who = home.stranger.with(bearer(token))
    await who.post(`${home.at}/activate`)
    const { body } = await home.stranger.post('/token/refresh', { refreshToken })
    expect(body.payload.workspace).toEqual(toActiveOffice(home, ['admin']))
    expect(body.payload.user.workspace).toEqual(toActiveOffice(home, ['admin']))
    expect(await getActiveWorkspace(home.stranger.with(bearer(body.payload.token)))).toEqual(
      toActiveOffice(home, ['admin']),
    )
  })

  test('lasts through a refresh of the cookie', async () => {
    const home = await createWorkspaceFixture()
    const who = home.stranger.with(await signInForCookie(home, 'user'))
    await who.post(`${home.at}/activate`)
    const answer = await who.post('/cookie/refresh')
    expect(answer.body.payload.workspace).toEqual(toActiveOffice(home, ['admin']))
    const cookie = answer.headers.get('set-cookie')!.split(';')[0]!
    expect(await getActiveWorkspace(home.stranger.with({ cookie }))).toEqual(toActiveOffice(home, ['admin']))
  })
})

describe('signing in', () => {
  test('leads into the workspace that it names, if one is a member', async () => {
    const home = await createTestTenant()
    const password = 'correct horse'
    const { body } = await home.stranger.post('/signup', { username: 'ada', password })
    const ada = home.stranger.with({ cookie: '' })
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

describe('an API token that was made for a workspace', () => {
  async function bound(home: WorkspaceFixture, workspace: string, name: 'user' | 'other' | 'admin' = 'user') {
    const maker = home.stranger.with(await signInForCookie(home, name))
    const answer = await maker.post('/me/api-tokens', { nickname: 'bot', workspace })
    return { answer, bot: home.stranger.with({ 'x-api-key': answer.body.token }) }
  }

  test('always acts in it, and knows no other', async () => {
    const home = await createWorkspaceFixture()
    const { answer, bot } = await bound(home, home.workspace)
    expect(answer.body.apiToken.workspace).toBe(home.workspace)
    expect(await getActiveWorkspace(bot)).toEqual(toActiveOffice(home, ['admin']))
    expect((await bot.post(`${home.at}/activate`)).status).toBe(200)
    const other = await createWorkspace(home.as('user'), { name: 'Other' })
    for (const answer of [
      await bot.post(`/workspaces/${other._id}/activate`),
      await bot.get(`/workspaces/${other._id}`),
      await bot.put(`/workspaces/${other._id}`, { name: 'x' }),
      await bot.delete(`/workspaces/${other._id}`),
    ])
      expect(statusAndCode(answer)).toEqual(WORKSPACE_NOT_FOUND)
    expect((await bot.get('/workspaces?count=1')).body.map(({ _id }: { _id: string }) => _id)).toEqual([home.workspace])
    expect(await getActiveWorkspace(bot)).toEqual(toActiveOffice(home, ['admin']))
  })

  test('is an admin’s, too, who reaches every other one without it', async () => {
    const home = await createWorkspaceFixture()
    const { bot } = await bound(home, home.workspace, 'admin')
    expect(await getActiveWorkspace(bot)).toEqual(toActiveOffice(home, []))
    expect((await bot.get('/workspaces/all')).body.map(({ _id }: { _id: string }) => _id)).toEqual([home.workspace])
    expect((await bot.post(`${home.at}/encrypted`, { a: 1 })).status).toBe(200)
    const elsewhere = `/workspaces/${home.elsewhere}`
    for (const answer of [
      await bot.get(elsewhere),
      await bot.get(`${elsewhere}/encrypted`),
      await bot.post(`${elsewhere}/encrypted`, { a: 1 }),
    ])
      expect(statusAndCode(answer)).toEqual(WORKSPACE_NOT_FOUND)
  })

  test('leads to no other one: none is made by it, and no invitation to one is seen or answered', async () => {
    const home = await createWorkspaceFixture()
    const { bot } = await bound(home, home.workspace, 'other')
    const invite = { email: `other@${home.id}.test`, roles: ['admin'] }
    expect((await home.as('editor').post(`/workspaces/${home.elsewhere}/invites`, invite)).status).toBe(201)
    expect(statusAndCode(await bot.post('/workspaces', { name: 'Mine' }))).toEqual([403, 'FORBIDDEN'])
    expect((await bot.get('/invites')).body).toEqual([])
    for (const kind of ['accept', 'decline'])
      expect(statusAndCode(await bot.post('/invites', { workspace: home.elsewhere, kind }))).toEqual([
        404,
        'INVITE_NOT_FOUND',
      ])
    expect((await home.as('other').get('/invites')).body).toHaveLength(1)
    // Nor is it told what its user's other tokens were, in the same workspace and by the same key.
    const key = { 'idempotency-key': 'k' }
    await home.as('other').post(`${home.at}/activate`)
    expect((await home.as('other').post('/workspaces', { name: 'Mine' }, key)).status).toBe(201)
    expect(statusAndCode(await bot.post('/workspaces', { name: 'Mine' }, key))).toEqual([403, 'FORBIDDEN'])
    expect((await home.as('other').get('/workspaces')).body).toHaveLength(2)
  })

  test('is not made for one that its user does not reach', async () => {
    const home = await createWorkspaceFixture()
    for (const workspace of [home.elsewhere, 'x'])
      expect(statusAndCode((await bound(home, workspace)).answer)).toEqual(WORKSPACE_NOT_FOUND)
  })

  test('is worth nothing while its user is no member, and nothing for ever when the workspace is gone', async () => {
    const home = await createWorkspaceFixture()
    const { bot } = await bound(home, home.workspace, 'other')
    expect((await getActiveWorkspace(bot)).roles).toEqual(['member'])
    await home.as('user').delete(`${home.at}/members/${home.users.other}`)
    expect(statusAndCode(await bot.get('/me'))).toEqual([401, 'UNAUTHENTICATED'])
    await home.as('user').post(`${home.at}/members`, { userId: home.users.other, roles: ['lead'] })
    expect((await getActiveWorkspace(bot)).roles).toEqual(['lead'])
    await home.as('user').delete(home.at)
    expect(statusAndCode(await bot.get('/me'))).toEqual([401, 'UNAUTHENTICATED'])
    const other = home.stranger.with(await signInForCookie(home, 'other'))
    expect(JSON.stringify((await other.get('/me/api-tokens')).body)).not.toContain(home.workspace)
  })
})

describe('who is active in a workspace', () => {
  test('sees at once what changes about it: roles, name, labels, and the end of it', async () => {
    const home = await createWorkspaceFixture()
    const [, , [, who]] = (await createClients(home, 'other')) as [unknown, unknown, [string, ApiClient]]
    const boss = home.as('user')
    await who.post(`${home.at}/activate`)
    expect(await getActiveWorkspace(who)).toEqual(toActiveOffice(home, ['member']))
    await boss.put(`${home.at}/members/${home.users.other}`, { roles: ['lead'] })
    expect(await getActiveWorkspace(who)).toEqual(toActiveOffice(home, ['lead']))
    await boss.put(home.at, { name: 'Shop', labels: ['pro'] })
    expect(await getActiveWorkspace(who)).toEqual({
      _id: home.workspace,
      name: 'Shop',
      roles: ['lead'],
      labels: ['pro'],
    })
    await boss.delete(`${home.at}/members/${home.users.other}`)
    expect(await getActiveWorkspace(who)).toBeNull()
    await boss.post(`${home.at}/members`, { userId: home.users.other, roles: ['lead'] })
    await who.post(`${home.at}/activate`)
    await boss.delete(home.at)
    expect(await getActiveWorkspace(who)).toBeNull()
  })

  test('as an admin of the tenant is in it no more when they are admin no more', async () => {
    const home = await createWorkspaceFixture()
    for (const [, who] of await createClients(home, 'admin')) await who.post(`${home.at}/activate`)
    await setRoles(home.tenant, 'user', ['admin'])
    await setRoles(home.tenant, 'admin', ['user'])
    for (const [, who] of await createClients(home, 'admin')) expect(await getActiveWorkspace(who)).toBeNull()
  })

  test('costs no question more than before, once the credential is known', async () => {
    const home = await createThingsFixture(
      [],
      [{ operation: 'read', scope: 'workspace', workspaceRoleBased: ['admin'] }],
    )
    const { _id } = await createWorkspace(home.as('user'))
    for (const who of [
      home.as('user'),
      home.stranger.with(bearer((await signInForTokens(home, 'user')).token)),
      home.stranger.with(await signInForCookie(home, 'user')),
    ]) {
      await who.post(`/workspaces/${_id}/activate`)
      await who.get(home.path)
      const asked = await recordStatements(home.origin, () => who.get(home.path))
      expect(asked).toHaveLength(1)
      expect(asked[0]).toContain('from entities')
    }
  })
})
