import { afterEach, describe, expect, test } from 'bun:test'
import { registerUser } from '../../../src/accounts/users/users'
import { nextPagePath } from '../../entities/fixtures'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { advanceClock, DAY, resetClock, signInForTokens } from '../session-fixtures'
import { createUser, toUsernames } from './user-fixtures'

afterEach(resetClock)

/** A tenant with three users besides those of every test tenant: admin, editor, user and other. */
async function createUsersFixture() {
  const own = await createTestTenant()
  await createUser(own, {
    username: 'Grace',
    email: 'hopper@navy.test',
    firstName: 'Grace',
    lastName: 'Höpper',
    roles: ['captain'],
  })
  await createUser(own, { username: 'ada', name: 'Countess', phone: '+44 1815', roles: ['user', 'captain'] })
  await createUser(own, { username: 'Adalbert', roles: [] })
  const admin = own.as('admin')
  const findUsernames = async (query: string) => {
    const answer = await admin.get(`/users?sort=username&${query}`)
    expect([answer.status, answer.body.message]).toEqual([200, undefined])
    return toUsernames(answer.body)
  }
  return { ...own, admin, findUsernames }
}

describe('GET /api/users', () => {
  test('the list of users is sorted newest first by default, and can be sorted, paged and counted', async () => {
    const { admin, findUsernames } = await createUsersFixture()
    const all = ['ada', 'Adalbert', 'admin', 'editor', 'Grace', 'other', 'user']
    expect(toUsernames((await admin.get('/users')).body).slice(0, 3)).toEqual(['Adalbert', 'ada', 'Grace'])
    expect(await findUsernames('')).toEqual(all)
    expect(toUsernames((await admin.get('/users?sort=-username')).body)).toEqual([...all].reverse())
    const seen: string[] = []
    for (let next: string | undefined = '/users?sort=username&limit=3&count=true'; next; ) {
      const answer = await admin.get(next)
      expect(answer.headers.get('x-total-count')).toBe('7')
      seen.push(...toUsernames(answer.body))
      next = nextPagePath(answer.headers)
    }
    expect(seen).toEqual(all)
    expect(statusAndCode(await admin.get('/users?sort=password'))).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await admin.get('/users?page=-1'))).toEqual([400, 'INVALID_INPUT'])
  })

  test('the username filter matches a part of the username in any case, and with exact the whole username', async () => {
    const { findUsernames } = await createUsersFixture()
    expect(await findUsernames('username=ADA')).toEqual(['ada', 'Adalbert'])
    expect(await findUsernames('username=ADA&exact=true')).toEqual(['ada'])
    expect(await findUsernames('username=ad&exact=1')).toEqual([])
    expect(await findUsernames('username=ad&exact=false')).toEqual(['ada', 'Adalbert', 'admin'])
    expect(await findUsernames('username=%25')).toEqual([])
    expect(await findUsernames('username=undefined&exact=true')).toHaveLength(7)
    expect(await findUsernames('username=&roles=&q=&_id=&select=')).toHaveLength(7)
  })

  test('the list of users can be filtered by roles, by IDs and by a search text', async () => {
    const { admin, findUsernames, users } = await createUsersFixture()
    expect(await findUsernames('roles=captain')).toEqual(['ada', 'Grace'])
    expect(await findUsernames('roles=captain,admin')).toEqual(['ada', 'admin', 'Grace'])
    expect(await findUsernames('roles=cap')).toEqual([])
    expect(await findUsernames(`_id=${users.user},${users.other},nobody`)).toEqual(['other', 'user'])
    expect(await findUsernames('q=NAVY.test')).toEqual(['Grace'])
    expect(await findUsernames('q=grace%20HÖPPER')).toEqual(['Grace'])
    expect(await findUsernames('q=countess')).toEqual(['ada'])
    expect(await findUsernames('q=1815')).toEqual(['ada'])
    expect(await findUsernames('q=a&roles=captain&username=ada')).toEqual(['ada'])
    expect(statusAndCode(await admin.get(`/users?_id=${Array(1001).fill('x')}`))).toEqual([400, 'INVALID_INPUT'])
  })

  test('select returns only the named fields of users and rejects unknown ones with 400 INVALID_INPUT', async () => {
    const { admin } = await createUsersFixture()
    const [ada] = (await admin.get('/users?username=ada&exact=true&select=username,roles')).body
    expect(ada).toEqual({ _id: ada._id, username: 'ada', roles: ['user', 'captain'] })
    expect(Object.keys((await admin.get('/users?limit=1&select=_id')).body[0])).toEqual(['_id'])
    for (const select of ['password', 'username,hash', 'toString'])
      expect(statusAndCode(await admin.get(`/users?select=${select}`))).toEqual([400, 'INVALID_INPUT'])
  })

  test('the roles filter finds 12 of more than 1,200 users page by page', async () => {
    const { tenant, admin } = await createUsersFixture()
    const names = Array.from({ length: 1_200 }, (_, n) => `many${String(n).padStart(4, '0')}`)
    for (let at = 0; at < names.length; at += 200)
      await Promise.all(
        names
          .slice(at, at + 200)
          .map((username, n) => registerUser(tenant, { username }, (at + n) % 100 === 7 ? ['rare'] : ['user'])),
      )
    const answer = await admin.get('/users?roles=rare&sort=username&limit=5&page=2&count=true')
    expect(toUsernames(answer.body)).toEqual(['many0507', 'many0607', 'many0707', 'many0807', 'many0907'])
    expect(answer.headers.get('x-total-count')).toBe('12')
    const last = await admin.get(nextPagePath(answer.headers)!)
    expect(toUsernames(last.body)).toEqual(['many1007', 'many1107'])
    expect(nextPagePath(last.headers)).toBeUndefined()
  })
})

test('GET /api/roles returns the built-in roles and those of users, without duplicates and in order', async () => {
  const own = await createTestTenant()
  expect((await own.as('admin').get('/roles')).body).toEqual(['admin', 'plugin', 'user'])
  await createUser(own, { username: 'a', roles: ['zebra', 'captain'] })
  const { _id } = await createUser(own, { username: 'b', roles: ['captain', 'Äpfel'] })
  const usedRoles = ['admin', 'captain', 'plugin', 'user', 'zebra']
  expect((await own.as('admin').get('/roles')).body).toEqual([...usedRoles, 'Äpfel'])
  await own.as('admin').put(`/users/${_id}`, { roles: [] })
  expect((await own.as('admin').get('/roles')).body).toEqual(usedRoles)
})

test('GET /api/users/stats returns the total, users per role, and recent registrations and activity', async () => {
  const own = await createUsersFixture()
  await signInForTokens(own, 'user')
  await signInForTokens(own, 'user')
  await signInForTokens(own, 'other')
  const times = (lastDay: number, lastWeek: number, lastMonth: number) => ({ lastDay, lastWeek, lastMonth })
  expect((await own.admin.get('/users/stats')).body).toEqual({
    total: 7,
    roles: { admin: 1, user: 4, plugin: 1, captain: 2 },
    registered: times(7, 7, 7),
    active: times(2, 2, 2),
  })
  advanceClock(3 * DAY)
  await createUser(own, { username: 'late' })
  await signInForTokens(own, 'user')
  const { registered, active } = (await own.admin.get('/users/stats')).body
  expect([registered, active]).toEqual([times(1, 8, 8), times(1, 2, 2)])
})
