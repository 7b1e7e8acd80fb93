import { describe, expect, test } from 'bun:test'
import { setRoles } from '../../../src/accounts/users'
import { askedBy, shelf } from '../../entities/kit'
import { type Client, house, refusal } from '../../house'
import { bearer, cookieOf, pairOf } from '../people'
import { GONE, made, type Office, office } from './kit'

const activeOf = async (who: Client) => (await who.get('/me')).body.workspace
const OFFICE = (home: Office, roles: string[]) => ({ _id: home.workspace, name: 'Office', roles, labels: [] })

/** Somebody by each kind of credential. */
async function comers(home: Office, name: 'user' | 'other' | 'admin'): Promise<[string, Client][]> {
  const { token } = await pairOf(home, name)
  return [
    ['an API token', home.as(name)],
    ['a bearer token', home.stranger.with(bearer(token))],
    ['a cookie', home.stranger.with(await cookieOf(home, name))],
  ]
}

describe('activating a workspace', () => {
  test('makes it the active one of the credential, and of no other', async () => {
    const home = await office()
    const all = await comers(home, 'user')
    for (const [kind, who] of all) {
      expect([kind, await activeOf(who)]).toEqual([kind, null])
      const { status, body } = await who.post(`${home.at}/activate`)
      expect([status, body]).toMatchObject([
        200,
        { _id: home.workspace, name: 'Office', roles: ['admin'], isPrivilegedUser: true },
      ])
      expect([kind, await activeOf(who)]).toEqual([kind, OFFICE(home, ['admin'])])
    }
    const other = await made(home.as('user'), { name: 'Other', labels: ['pro'] })
    const [first, ...rest] = all
    await first![1].post(`/workspaces/${other._id}/activate`)
    expect(await activeOf(first![1])).toEqual({ _id: other._id, name: 'Other', roles: ['admin'], labels: ['pro'] })
    for (const [, who] of rest) expect((await activeOf(who))._id).toBe(home.workspace)
  })

  test('is for members, and for admins of the tenant, who have no roles there', async () => {
    const home = await office()
    for (const [, who] of await comers(home, 'other')) {
      expect(refusal(await who.post(`/workspaces/${home.elsewhere}/activate`))).toEqual(GONE)
      expect(await activeOf(who)).toBeNull()
    }
    for (const [, who] of await comers(home, 'admin')) {
      expect((await who.post(`${home.at}/activate`)).status).toBe(200)
      expect(await activeOf(who)).toEqual(OFFICE(home, []))
    }
    expect(refusal(await home.stranger.post(`${home.at}/activate`))).toEqual([401, 'UNAUTHENTICATED'])
  })

  test('needs no new token: the old one acts there from then on', async () => {
    const home = await office()
    const { refreshToken, token } = await pairOf(home, 'user')
    const who = home.stranger.with(bearer(token))
    await who.post(`${home.at}/activate`)
    const { body } = await home.stranger.post('/token/refresh', { refreshToken })
    expect(body.payload.workspace).toEqual(OFFICE(home, ['admin']))
    expect(body.payload.user.workspace).toEqual(OFFICE(home, ['admin']))
    expect(await activeOf(home.stranger.with(bearer(body.payload.token)))).toEqual(OFFICE(home, ['admin']))
  })

  test('lasts through a refresh of the cookie', async () => {
    const home = await office()
    const who = home.stranger.with(await cookieOf(home, 'user'))
    await who.post(`${home.at}/activate`)
    const answer = await who.post('/cookie/refresh')
    expect(answer.body.payload.workspace).toEqual(OFFICE(home, ['admin']))
    const cookie = answer.headers.get('set-cookie')!.split(';')[0]!
    expect(await activeOf(home.stranger.with({ cookie }))).toEqual(OFFICE(home, ['admin']))
  })
})

describe('signing in', () => {
  test('leads into the workspace that it names, if one is a member', async () => {
    const home = await house()
    const password = 'correct horse'
    const { body } = await home.stranger.post('/signup', { username: 'ada', password })
    const ada = home.stranger.with({ cookie: '' })
    const { _id } = await made(home.as('user'))
    const signIn = (more: object) => ada.post('/signin', { username: 'ada', password, ...more })
    expect(refusal(await signIn({ workspace: _id }))).toEqual(GONE)
    expect(refusal(await signIn({ workspace: 'x' }))).toEqual(GONE)
    await home.as('user').post(`/workspaces/${_id}/members`, { userId: body.payload.user._id, roles: ['lead'] })
    const workspace = { _id, name: 'Office', roles: ['lead'], labels: [] }
    for (const more of [{}, { authType: 'oauth' }]) {
      const { payload } = (await signIn({ workspace: _id, ...more })).body
      expect([payload.workspace, payload.user.workspace]).toEqual([workspace, workspace])
      expect((await signIn(more)).body.payload.workspace).toBeNull()
    }
    const wrong = await ada.post('/signin', { username: 'ada', password: 'wrong horse', workspace: _id })
    expect(refusal(wrong)).toEqual([401, 'INVALID_CREDENTIALS'])
  })
})

describe('an API token that was made for a workspace', () => {
  async function bound(home: Office, workspace: string, name: 'user' | 'other' | 'admin' = 'user') {
    const maker = home.stranger.with(await cookieOf(home, name))
    const answer = await maker.post('/me/api-tokens', { nickname: 'bot', workspace })
    return { answer, bot: home.stranger.with({ 'x-api-key': answer.body.token }) }
  }

  test('always acts in it, and knows no other', async () => {
    const home = await office()
    const { answer, bot } = await bound(home, home.workspace)
    expect(answer.body.apiToken.workspace).toBe(home.workspace)
    expect(await activeOf(bot)).toEqual(OFFICE(home, ['admin']))
    expect((await bot.post(`${home.at}/activate`)).status).toBe(200)
    const other = await made(home.as('user'), { name: 'Other' })
    for (const answer of [
      await bot.post(`/workspaces/${other._id}/activate`),
      await bot.get(`/workspaces/${other._id}`),
      await bot.put(`/workspaces/${other._id}`, { name: 'x' }),
      await bot.delete(`/workspaces/${other._id}`),
    ])
      expect(refusal(answer)).toEqual(GONE)
    expect((await bot.get('/workspaces?count=1')).body.map(({ _id }: { _id: string }) => _id)).toEqual([home.workspace])
    expect(await activeOf(bot)).toEqual(OFFICE(home, ['admin']))
  })

  test('is an admin’s, too, who reaches every other one without it', async () => {
    const home = await office()
    const { bot } = await bound(home, home.workspace, 'admin')
    expect(await activeOf(bot)).toEqual(OFFICE(home, []))
    expect((await bot.get('/workspaces/all')).body.map(({ _id }: { _id: string }) => _id)).toEqual([home.workspace])
    expect((await bot.post(`${home.at}/encrypted`, { a: 1 })).status).toBe(200)
    const elsewhere = `/workspaces/${home.elsewhere}`
    for (const answer of [
      await bot.get(elsewhere),
      await bot.get(`${elsewhere}/encrypted`),
      await bot.post(`${elsewhere}/encrypted`, { a: 1 }),
    ])
      expect(refusal(answer)).toEqual(GONE)
  })

  test('leads to no other one: none is made by it, and no invitation to one is seen or answered', async () => {
    const home = await office()
    const { bot } = await bound(home, home.workspace, 'other')
    const invite = { email: `other@${home.id}.test`, roles: ['admin'] }
    expect((await home.as('editor').post(`/workspaces/${home.elsewhere}/invites`, invite)).status).toBe(201)
    expect(refusal(await bot.post('/workspaces', { name: 'Mine' }))).toEqual([403, 'FORBIDDEN'])
    expect((await bot.get('/invites')).body).toEqual([])
    for (const kind of ['accept', 'decline'])
      expect(refusal(await bot.post('/invites', { workspace: home.elsewhere, kind }))).toEqual([
        404,
        'INVITE_NOT_FOUND',
      ])
    expect((await home.as('other').get('/invites')).body).toHaveLength(1)
    // Nor is it told what its user's other tokens were, in the same workspace and by the same key.
    const key = { 'idempotency-key': 'k' }
    await home.as('other').post(`${home.at}/activate`)
    expect((await home.as('other').post('/workspaces', { name: 'Mine' }, key)).status).toBe(201)
    expect(refusal(await bot.post('/workspaces', { name: 'Mine' }, key))).toEqual([403, 'FORBIDDEN'])
    expect((await home.as('other').get('/workspaces')).body).toHaveLength(2)
  })

  test('is not made for one that its user does not reach', async () => {
    const home = await office()
    for (const workspace of [home.elsewhere, 'x']) expect(refusal((await bound(home, workspace)).answer)).toEqual(GONE)
  })

  test('is worth nothing while its user is no member, and nothing for ever when the workspace is gone', async () => {
    const home = await office()
    const { bot } = await bound(home, home.workspace, 'other')
    expect((await activeOf(bot)).roles).toEqual(['member'])
    await home.as('user').delete(`${home.at}/members/${home.users.other}`)
    expect(refusal(await bot.get('/me'))).toEqual([401, 'UNAUTHENTICATED'])
    await home.as('user').post(`${home.at}/members`, { userId: home.users.other, roles: ['lead'] })
    expect((await activeOf(bot)).roles).toEqual(['lead'])
    await home.as('user').delete(home.at)
    expect(refusal(await bot.get('/me'))).toEqual([401, 'UNAUTHENTICATED'])
    const other = home.stranger.with(await cookieOf(home, 'other'))
    expect(JSON.stringify((await other.get('/me/api-tokens')).body)).not.toContain(home.workspace)
  })
})

describe('who is active in a workspace', () => {
  test('sees at once what changes about it: roles, name, labels, and the end of it', async () => {
    const home = await office()
    const [, , [, who]] = (await comers(home, 'other')) as [unknown, unknown, [string, Client]]
    const boss = home.as('user')
    await who.post(`${home.at}/activate`)
    expect(await activeOf(who)).toEqual(OFFICE(home, ['member']))
    await boss.put(`${home.at}/members/${home.users.other}`, { roles: ['lead'] })
    expect(await activeOf(who)).toEqual(OFFICE(home, ['lead']))
    await boss.put(home.at, { name: 'Shop', labels: ['pro'] })
    expect(await activeOf(who)).toEqual({ _id: home.workspace, name: 'Shop', roles: ['lead'], labels: ['pro'] })
    await boss.delete(`${home.at}/members/${home.users.other}`)
    expect(await activeOf(who)).toBeNull()
    await boss.post(`${home.at}/members`, { userId: home.users.other, roles: ['lead'] })
    await who.post(`${home.at}/activate`)
    await boss.delete(home.at)
    expect(await activeOf(who)).toBeNull()
  })

  test('as an admin of the tenant is in it no more when they are admin no more', async () => {
    const home = await office()
    for (const [, who] of await comers(home, 'admin')) await who.post(`${home.at}/activate`)
    await setRoles(home.tenant, 'user', ['admin'])
    await setRoles(home.tenant, 'admin', ['user'])
    for (const [, who] of await comers(home, 'admin')) expect(await activeOf(who)).toBeNull()
  })

  test('costs no question more than before, once the credential is known', async () => {
    const home = await shelf([], [{ operation: 'read', scope: 'workspace', workspaceRoleBased: ['admin'] }])
    const { _id } = await made(home.as('user'))
    for (const who of [
      home.as('user'),
      home.stranger.with(bearer((await pairOf(home, 'user')).token)),
      home.stranger.with(await cookieOf(home, 'user')),
    ]) {
      await who.post(`/workspaces/${_id}/activate`)
      await who.get(home.path)
      const asked = await askedBy(home.origin, () => who.get(home.path))
      expect(asked).toHaveLength(1)
      expect(asked[0]).toContain('from entities')
    }
  })
})
