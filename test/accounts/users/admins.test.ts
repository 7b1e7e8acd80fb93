import { describe, expect, test } from 'bun:test'
import { issueApiToken } from '../../../src/accounts/api-tokens'
import { FORBIDDEN } from '../../expectations'
import { createTestTenant, fullAccessRules, statusAndCode } from '../../test-tenant'
import { bearer, createSignedInClient, signInForTokens } from '../session-fixtures'
import { createUser, LAST_ADMIN } from './user-fixtures'

describe('the last admin of a tenant', () => {
  test('deleting or demoting the last admin gets 409 LAST_ADMIN until there is another admin', async () => {
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

  test('two admins who delete or demote each other simultaneously leave exactly one admin', async () => {
    for (const [first, second] of [
      ['remove', 'remove'],
      ['demote', 'demote'],
      ['remove', 'demote'],
    ] as const) {
      const { as, users } = await createTestTenant()
      await as('admin').put(`/users/${users.user}`, { roles: ['admin'] })
      const end = (by: 'admin' | 'user', whom: string, how: 'remove' | 'demote') =>
        how === 'remove' ? as(by).delete(`/users/${whom}`) : as(by).put(`/users/${whom}`, { roles: [] })
      const answers = await Promise.all([end('admin', users.user, first), end('user', users.admin, second)])
      const statuses = answers.map(({ status }) => status).sort()
      expect(statuses[0], `${first} ${second}`).toBe(200)
      expect(statuses[1]).toBeOneOf([401, 403, 409])
      const remaining = await Promise.all([as('admin').get('/users?roles=admin'), as('user').get('/users?roles=admin')])
      expect(remaining.filter(({ status }) => status === 200).map(({ body }) => body.length)).toEqual([1])
    }
  })

  test('four admins who delete themselves simultaneously leave one, who gets 409', async () => {
    const { as, users } = await createTestTenant()
    for (const name of ['user', 'other', 'editor'] as const)
      await as('admin').put(`/users/${users[name]}`, { roles: ['admin'] })
    const all = ['admin', 'user', 'other', 'editor'] as const
    const answers = await Promise.all(all.map((name) => as(name).delete(`/users/${users[name]}`)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 409])
  })
})

describe('changed roles of a user', () => {
  test('changed roles apply to API tokens and sessions at the next request', async () => {
    const own = await createTestTenant()
    const pair = await signInForTokens(own, 'user')
    const kinds = [own.as('user'), own.anonymous.with(bearer(pair.token))]
    const admin = own.as('admin')
    for (const roles of [['admin'], ['user'], ['user', 'admin'], []]) {
      expect((await admin.put(`/users/${own.users.user}`, { roles })).status).toBe(200)
      for (const client of kinds) {
        expect((await client.get('/users')).status).toBe(roles.includes('admin') ? 200 : 403)
        expect((await client.get('/me')).body.roles).toEqual(roles)
      }
    }
  })

  test('changed roles apply to the permissions of blueprints at the next request', async () => {
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

test('an e-mail address that an admin sets counts as verified; one that the user sets does not', async () => {
  const own = await createTestTenant()
  const admin = own.as('admin')
  const isVerified = async (_id: string) =>
    !!Number((await own.tenant.db.query('select email_verified from users where _id = ?', [_id]))[0]![0])
  const { _id } = await createUser(own, { username: 'grace', email: 'grace@x.test' })
  expect(await isVerified(_id)).toBeTrue()
  expect(await isVerified((await createUser(own, { username: 'nomail' }))._id)).toBeFalse()
  expect(await isVerified(own.users.user)).toBeFalse()
  // An unchanged address does not become verified.
  await admin.put(`/users/${own.users.user}`, (await admin.get(`/users/${own.users.user}`)).body)
  expect(await isVerified(own.users.user)).toBeFalse()
  await admin.put(`/users/${own.users.user}`, { email: 'new@x.test' })
  expect(await isVerified(own.users.user)).toBeTrue()
  await (await createSignedInClient(own, 'user')).post('/me', { email: 'mine@x.test' })
  expect(await isVerified(own.users.user)).toBeFalse()
  await admin.put(`/users/${_id}`, { email: '' })
  expect(await isVerified(_id)).toBeFalse()
})

test('an API token of an admin can access users only within its scopes', async () => {
  const own = await createTestTenant()
  const createScopedClient = async (scopes: string[]) => {
    const pair = await signInForTokens(own, 'admin')
    const created = await own.anonymous.with(bearer(pair.token)).post('/me/api-tokens', { nickname: 'x', scopes })
    return own.anonymous.with({ 'x-api-key': created.body.token })
  }
  const [reader, otherClient] = [
    await createScopedClient(['users:read']),
    await createScopedClient(['accounts:write', 'entities:write']),
  ]
  expect((await reader.get('/users')).status).toBe(200)
  expect((await reader.get('/roles')).status).toBe(200)
  expect(statusAndCode(await reader.post('/users', { username: 'x' }))).toEqual(FORBIDDEN)
  expect(statusAndCode(await reader.put(`/users/${own.users.user}`, { roles: ['admin'] }))).toEqual(FORBIDDEN)
  expect(statusAndCode(await otherClient.get('/users'))).toEqual(FORBIDDEN)
  expect(statusAndCode(await otherClient.delete(`/users/${own.users.user}`))).toEqual(FORBIDDEN)
})

test('an API token with the scope users:write manages users, but nobody whose role reaches beyond the rules', async () => {
  const own = await createTestTenant()
  const { token } = await issueApiToken(own.tenant, own.users.admin, { nickname: 'hr', scopes: ['users:write'] })
  const hr = own.anonymous.with({ 'x-api-key': token })
  const admin = own.as('admin')
  const second = (await admin.post('/users', { username: 'second', roles: ['admin'] })).body
  const plugin = (await admin.post('/users', { username: 'plug', roles: ['plugin'] })).body
  for (const role of ['plugin', 'editor']) {
    expect(statusAndCode(await hr.post('/users', { username: role, roles: [role] }))).toEqual(FORBIDDEN)
    expect(statusAndCode(await hr.put(`/users/${own.users.user}`, { roles: [role] }))).toEqual(FORBIDDEN)
  }
  for (const refused of [
    await hr.put(`/users/${plugin._id}`, { password: 'correct-horse' }),
    await hr.post('/users', { username: 'mine', roles: ['user', 'admin'] }),
    await hr.put(`/users/${own.users.user}`, { roles: ['admin'] }),
    await hr.put(`/users/${second._id}`, { password: 'correct-horse' }),
    await hr.put(`/users/${second._id}`, { roles: ['user'] }),
    await hr.put(`/users/${own.users.admin}`, { firstName: 'Eve' }),
    await hr.delete(`/users/${second._id}`),
    await hr.delete(`/users/${second._id}/sessions`),
    await hr.delete(`/users/${own.users.admin}/api-tokens`),
  ])
    expect(statusAndCode(refused)).toEqual(FORBIDDEN)
  expect((await admin.get(`/users/${second._id}`)).body).toEqual(second)
  const made = await hr.post('/users', { username: 'plain', roles: ['user', 'sales'] })
  expect(made.status).toBe(201)
  expect((await hr.put(`/users/${made.body._id}`, { firstName: 'Ann', password: 'correct-horse' })).status).toBe(200)
  expect((await hr.delete(`/users/${made.body._id}/sessions`)).status).toBe(200)
  expect((await hr.delete(`/users/${made.body._id}`)).status).toBe(200)
  // A token without scopes has all rights of its user.
  expect((await admin.put(`/users/${second._id}`, { firstName: 'Bob' })).status).toBe(200)
})
