import { describe, expect, test } from 'bun:test'
import { createTestTenant, fullAccessRules, statusAndCode } from '../../test-tenant'
import { bearer, createSignedInClient, signInForTokens } from '../session-fixtures'
import { createUser, FORBIDDEN, LAST_ADMIN } from './user-fixtures'

describe('the last admin', () => {
  test('is neither removed nor demoted, until there is another', async () => {
    const { as, users } = await createTestTenant()
    const [admin, at] = [as('admin'), `/users/${users.admin}`]
    expect(statusAndCode(await admin.delete(at))).toEqual(LAST_ADMIN)
    for (const roles of [[], ['user'], ['Admin', 'admins']])
      expect(statusAndCode(await admin.put(at, { roles, name: 'Gone' }))).toEqual(LAST_ADMIN)
    expect((await admin.get(at)).body).toMatchObject({ roles: ['admin', 'user'], name: '' })
    expect((await admin.put(at, { roles: ['admin'], name: 'Here' })).status).toBe(200)

    expect((await admin.put(`/users/${users.user}`, { roles: ['admin'] })).status).toBe(200)
    expect((await admin.put(at, { roles: ['user'] })).status).toBe(200)
    expect(statusAndCode(await as('user').delete(`/users/${users.user}`))).toEqual(LAST_ADMIN)
    expect((await as('user').delete(at)).status).toBe(200)
  })

  test('is left by whatever two admins do to each other at once', async () => {
    for (const [one, other] of [
      ['remove', 'remove'],
      ['demote', 'demote'],
      ['remove', 'demote'],
    ] as const) {
      const { as, users } = await createTestTenant()
      await as('admin').put(`/users/${users.user}`, { roles: ['admin'] })
      const end = (by: 'admin' | 'user', whom: string, how: 'remove' | 'demote') =>
        how === 'remove' ? as(by).delete(`/users/${whom}`) : as(by).put(`/users/${whom}`, { roles: [] })
      const answers = await Promise.all([end('admin', users.user, one), end('user', users.admin, other)])
      const statuses = answers.map(({ status }) => status).sort()
      expect(statuses[0], `${one} ${other}`).toBe(200)
      expect(statuses[1]).toBeOneOf([401, 403, 409])
      const left = await Promise.all([as('admin').get('/users?roles=admin'), as('user').get('/users?roles=admin')])
      expect(left.filter(({ status }) => status === 200).map(({ body }) => body.length)).toEqual([1])
    }
  })

  test('is left, too, when several remove themselves at once', async () => {
    const { as, users } = await createTestTenant()
    for (const name of ['user', 'other', 'editor'] as const)
      await as('admin').put(`/users/${users[name]}`, { roles: ['admin'] })
    const all = ['admin', 'user', 'other', 'editor'] as const
    const answers = await Promise.all(all.map((name) => as(name).delete(`/users/${users[name]}`)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 409])
  })
})

describe('other roles count at once', () => {
  test('for every kind of credential, in both directions', async () => {
    const own = await createTestTenant()
    const pair = await signInForTokens(own, 'user')
    const kinds = [own.as('user'), own.stranger.with(bearer(pair.token))]
    const admin = own.as('admin')
    for (const roles of [['admin'], ['user'], ['user', 'admin'], []]) {
      expect((await admin.put(`/users/${own.users.user}`, { roles })).status).toBe(200)
      for (const client of kinds) {
        expect((await client.get('/users')).status).toBe(roles.includes('admin') ? 200 : 403)
        expect((await client.get('/me')).body.roles).toEqual(roles)
      }
    }
  })

  test('for what rules of blueprints allow', async () => {
    const { as, users } = await createTestTenant()
    await as('admin').post('/blueprints', {
      key: 'logs',
      name: 'Logs',
      fields: [],
      permissions: fullAccessRules('tenant', 'captain'),
    })
    const path = '/blueprints/logs/entities'
    expect(statusAndCode(await as('user').get(path))).toEqual(FORBIDDEN)
    await as('admin').put(`/users/${users.user}`, { roles: ['captain'] })
    expect((await as('user').get(path)).status).toBe(200)
    await as('admin').put(`/users/${users.user}`, { roles: ['user'] })
    expect(statusAndCode(await as('user').get(path))).toEqual(FORBIDDEN)
  })
})

test('an address that an admin gives counts as verified, one that users give themselves does not', async () => {
  const own = await createTestTenant()
  const admin = own.as('admin')
  const verified = async (_id: string) =>
    !!Number((await own.tenant.db.query('select email_verified from users where _id = ?', [_id]))[0]![0])
  const { _id } = await createUser(own, { username: 'grace', email: 'grace@x.test' })
  expect(await verified(_id)).toBeTrue()
  expect(await verified((await createUser(own, { username: 'nomail' }))._id)).toBeFalse()
  expect(await verified(own.users.user)).toBeFalse()
  // What is sent back unchanged proves nothing.
  await admin.put(`/users/${own.users.user}`, (await admin.get(`/users/${own.users.user}`)).body)
  expect(await verified(own.users.user)).toBeFalse()
  await admin.put(`/users/${own.users.user}`, { email: 'new@x.test' })
  expect(await verified(own.users.user)).toBeTrue()
  await (await createSignedInClient(own, 'user')).post('/me', { email: 'mine@x.test' })
  expect(await verified(own.users.user)).toBeFalse()
  await admin.put(`/users/${_id}`, { email: '' })
  expect(await verified(_id)).toBeFalse()
})

test('a token of an admin is good for users as far as its scopes go', async () => {
  const own = await createTestTenant()
  const token = async (scopes: string[]) => {
    const pair = await signInForTokens(own, 'admin')
    const made = await own.stranger.with(bearer(pair.token)).post('/me/api-tokens', { nickname: 'x', scopes })
    return own.stranger.with({ 'x-api-key': made.body.token })
  }
  const [reads, other] = [await token(['users:read']), await token(['accounts:write', 'entities:write'])]
  expect((await reads.get('/users')).status).toBe(200)
  expect((await reads.get('/roles')).status).toBe(200)
  expect(statusAndCode(await reads.post('/users', { username: 'x' }))).toEqual(FORBIDDEN)
  expect(statusAndCode(await reads.put(`/users/${own.users.user}`, { roles: ['admin'] }))).toEqual(FORBIDDEN)
  expect(statusAndCode(await other.get('/users'))).toEqual(FORBIDDEN)
  expect(statusAndCode(await other.delete(`/users/${own.users.user}`))).toEqual(FORBIDDEN)
})
