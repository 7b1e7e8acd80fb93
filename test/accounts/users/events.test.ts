import { afterEach, expect, test } from 'bun:test'
import { createTestTenant } from '../../test-tenant'
import { advanceClock, MINUTE, resetClock } from '../session-fixtures'
import { createUser, listEvents } from './user-fixtures'

afterEach(resetClock)

test('what happens to users is written down: by whom, and what of them changed, but no values', async () => {
  const own = await createTestTenant()
  const { as, stranger, users } = own
  const admin = as('admin')
  const signed = await stranger.post('/signup', { username: 'grace', password: 'correct-horse', email: 'g@x.test' })
  const grace = signed.body.payload.user._id
  const ada = await createUser(own, { username: 'ada', roles: ['captain'], password: 'correct-horse' })
  await admin.put(`/users/${ada._id}`, { roles: ['user'], phone: '+44 1815', password: 'battery-staple' })
  await as('user').post('/me', { firstName: 'Jane', metadata: { a: 1 } })
  await admin.delete(`/users/${ada._id}`)

  const happened = (eventName: string, by: string, user: string, metadata: object) => ({
    ...{ source: 'accounts', kind: 'user', eventName, user: by, workspace: null },
    metadata: { user, ...metadata },
  })
  const told = await listEvents(own, 'source=accounts')
  expect(told).toMatchObject([
    happened('user-registered', grace, grace, { username: 'grace', roles: ['user'] }),
    happened('user-created', users.admin, ada._id, { username: 'ada', roles: ['captain'] }),
    happened('user-updated', users.admin, ada._id, { roles: ['user'] }),
    happened('user-updated', users.user, users.user, { username: 'user' }),
    happened('user-removed', users.admin, ada._id, { username: 'ada', roles: ['user'] }),
  ])
  expect((told[2]!.metadata.changed as string[]).sort()).toEqual(['password', 'phone', 'roles'])
  expect((told[3]!.metadata.changed as string[]).sort()).toEqual(['firstName', 'metadata'])
  expect(JSON.stringify(told)).not.toMatch(/horse|staple|argon2|1815|Jane|g@x/)
})

test('what was refused, or changed nothing, has not happened', async () => {
  const own = await createTestTenant()
  const { as, stranger, users } = own
  const admin = as('admin')
  await stranger.post('/signup', { username: 'user', password: 'correct-horse' })
  await admin.post('/users', { username: 'USER' })
  await admin.put(`/users/${users.user}`, { username: 'admin' })
  await admin.put(`/users/${users.admin}`, { roles: [] })
  await admin.delete(`/users/${users.admin}`)
  await admin.delete('/users/nobody')
  await as('user').post('/me', { birthDate: '2026-02-30' })
  await admin.put(`/users/${users.user}`, (await admin.get(`/users/${users.user}`)).body)
  expect(await listEvents(own, 'source=accounts')).toEqual([])
})

test('that sign-ins fail again and again is written down when they begin to be refused, once', async () => {
  const own = await createTestTenant()
  const { _id } = await createUser(own, { username: 'grace', password: 'correct-horse' })
  const fail = (username: string) => own.stranger.post('/signin', { username, password: 'wrong-horse' })
  const told = () => listEvents(own, 'eventName=signin-failed')
  for (let n = 0; n < 10; n++) expect((await fail('grace')).status).toBe(401)
  expect(await told()).toEqual([])
  expect((await fail('GRACE')).status).toBe(429)
  const about = (of: string) => ({ source: 'accounts', kind: 'signin', user: null, metadata: { about: of, user: _id } })
  expect(await told()).toMatchObject([about('account')])

  await Promise.all([1, 2, 3, 4].map(() => fail('grace')))
  expect(await told()).toHaveLength(1)
  expect((await fail('correct-horse-by-mistake')).status).toBe(401)
  expect(await told()).toHaveLength(1)
  expect(JSON.stringify(await told())).not.toMatch(/horse/)

  advanceClock(11 * MINUTE)
  for (let n = 0; n < 10; n++) expect((await fail('grace')).status).toBe(401)
  expect(await told()).toHaveLength(1)
  await fail('grace')
  expect(await told()).toHaveLength(2)
})

test('many failures at once are told once', async () => {
  const own = await createTestTenant()
  await createUser(own, { username: 'grace' })
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => own.stranger.post('/signin', { username: 'grace', password: 'wrong-horse' })),
  )
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(10)
  expect(await listEvents(own, 'eventName=signin-failed')).toHaveLength(1)
})

test('of two who act at once, each is told', async () => {
  const own = await createTestTenant()
  const names = Array.from({ length: 20 }, (_, n) => `u${n}`)
  await Promise.all(names.map((username) => createUser(own, { username })))
  const told = await listEvents(own, 'eventName=user-created')
  expect(told.map(({ metadata }) => metadata.username).sort()).toEqual([...names].sort())
})
