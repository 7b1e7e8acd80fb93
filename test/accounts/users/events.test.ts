import { afterEach, expect, test } from 'bun:test'
import { findOrCreateUser } from '../../../src/accounts/social/identity-links'
import { codeAt, decodeBase32, stepAt } from '../../../src/accounts/totp/codes'
import { now } from '../../../src/core/clock'
import { createTestTenant } from '../../test-tenant'
import { createMailFixture } from '../mail/mail-fixtures'
import { advanceClock, MINUTE, resetClock } from '../session-fixtures'
import { createUser, listEvents } from './user-fixtures'

afterEach(resetClock)

test('user events record who changed which fields of which user, without the values', async () => {
  const own = await createTestTenant()
  const { as, anonymous, users } = own
  const admin = as('admin')
  const signed = await anonymous.post('/signup', { username: 'grace', password: 'correct-horse', email: 'g@x.test' })
  const grace = signed.body.payload.user._id
  const ada = await createUser(own, { username: 'ada', roles: ['captain'], password: 'correct-horse' })
  await admin.put(`/users/${ada._id}`, { roles: ['user'], phone: '+44 1815', password: 'battery-staple' })
  await as('user').post('/me', { firstName: 'Jane', metadata: { a: 1 } })
  await admin.delete(`/users/${ada._id}`)

  const userEvent = (eventName: string, by: string, user: string, metadata: object) => ({
    ...{ source: 'accounts', kind: 'user', eventName, user: by, workspace: null },
    metadata: { user, ...metadata },
  })
  const events = await listEvents(own, 'source=accounts')
  expect(events).toMatchObject([
    userEvent('user-registered', grace, grace, { username: 'grace', roles: ['user'] }),
    userEvent('user-created', users.admin, ada._id, { username: 'ada', roles: ['captain'] }),
    userEvent('user-updated', users.admin, ada._id, { roles: ['user'] }),
    userEvent('user-updated', users.user, users.user, { username: 'user' }),
    userEvent('user-removed', users.admin, ada._id, { username: 'ada', roles: ['user'] }),
  ])
  expect((events[2]!.metadata.changed as string[]).sort()).toEqual(['password', 'phone', 'roles'])
  expect((events[3]!.metadata.changed as string[]).sort()).toEqual(['firstName', 'metadata'])
  expect(JSON.stringify(events)).not.toMatch(/horse|staple|argon2|1815|Jane|g@x/)
})

test('rejected requests and requests without changes emit no user events', async () => {
  const own = await createTestTenant()
  const { as, anonymous, users } = own
  const admin = as('admin')
  await anonymous.post('/signup', { username: 'user', password: 'correct-horse' })
  await admin.post('/users', { username: 'USER' })
  await admin.put(`/users/${users.user}`, { username: 'admin' })
  await admin.put(`/users/${users.admin}`, { roles: [] })
  await admin.delete(`/users/${users.admin}`)
  await admin.delete('/users/nobody')
  await as('user').post('/me', { birthDate: '2026-02-30' })
  await admin.put(`/users/${users.user}`, (await admin.get(`/users/${users.user}`)).body)
  expect(await listEvents(own, 'source=accounts')).toEqual([])
})

test('a second factor, a reset password and an identity that is linked by its address emit user-updated', async () => {
  const { ada, tenant, tokenOf, anonymous, verify, user, as } = await createMailFixture()
  await verify()
  const { secret } = (await ada.post('/me/totp')).body
  await ada.post('/me/totp/confirm', { code: codeAt(decodeBase32(secret), stepAt(now())) })
  expect((await as('admin').delete(`/users/${user._id}/totp`)).status).toBe(200)
  expect((await as('admin').delete(`/users/${user._id}/totp`)).status).toBe(200)
  await anonymous.post('/password/forgot', { email: 'ada@lovelace.test' })
  const reset = { token: await tokenOf('passwordReset'), password: 'battery staple' }
  expect((await anonymous.post('/password/reset', reset)).status).toBe(200)
  const profile = { subject: 'subject-at-google', email: 'ada@lovelace.test', emailVerified: true }
  expect((await findOrCreateUser(tenant, 'google', profile))._id).toBe(user._id)
  const events = await listEvents({ as }, 'eventName=user-updated')
  expect(events.map(({ metadata }) => [metadata.user, metadata.changed])).toEqual(
    [['totp'], ['totp'], ['password'], ['identities']].map((changed) => [user._id, changed]),
  )
  expect(JSON.stringify(events)).not.toMatch(/staple|argon2|subject-at-google/)
})

test('a signin-failed event is emitted once when failed sign-ins of an account become rate-limited', async () => {
  const own = await createTestTenant()
  const { _id } = await createUser(own, { username: 'grace', password: 'correct-horse' })
  const fail = (username: string) => own.anonymous.post('/signin', { username, password: 'wrong-horse' })
  const listFailures = () => listEvents(own, 'eventName=signin-failed')
  for (let n = 0; n < 10; n++) expect((await fail('grace')).status).toBe(401)
  expect(await listFailures()).toEqual([])
  expect((await fail('GRACE')).status).toBe(429)
  const failure = (of: string) => ({
    source: 'accounts',
    kind: 'signin',
    user: null,
    metadata: { about: of, user: _id },
  })
  expect(await listFailures()).toMatchObject([failure('account')])

  await Promise.all([1, 2, 3, 4].map(() => fail('grace')))
  expect(await listFailures()).toHaveLength(1)
  expect((await fail('correct-horse-by-mistake')).status).toBe(401)
  expect(await listFailures()).toHaveLength(1)
  expect(JSON.stringify(await listFailures())).not.toMatch(/horse/)

  advanceClock(11 * MINUTE)
  for (let n = 0; n < 10; n++) expect((await fail('grace')).status).toBe(401)
  expect(await listFailures()).toHaveLength(1)
  await fail('grace')
  expect(await listFailures()).toHaveLength(2)
})

test('twenty simultaneous failed sign-ins emit one signin-failed event', async () => {
  const own = await createTestTenant()
  await createUser(own, { username: 'grace' })
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => own.anonymous.post('/signin', { username: 'grace', password: 'wrong-horse' })),
  )
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(10)
  expect(await listEvents(own, 'eventName=signin-failed')).toHaveLength(1)
})

test('twenty simultaneous creations of users emit one event each', async () => {
  const own = await createTestTenant()
  const names = Array.from({ length: 20 }, (_, n) => `u${n}`)
  await Promise.all(names.map((username) => createUser(own, { username })))
  const events = await listEvents(own, 'eventName=user-created')
  expect(events.map(({ metadata }) => metadata.username).sort()).toEqual([...names].sort())
})
