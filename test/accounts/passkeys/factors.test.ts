import { afterEach, beforeAll, expect, test } from 'bun:test'
import { removeExpired } from '../../../src/accounts/passkeys/challenges'
import { codeAt, decodeBase32, stepAt } from '../../../src/accounts/totp/codes'
import { now } from '../../../src/core/clock'
import { withLease } from '../../../src/jobs/with-lease'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { createMailFixture, password } from '../mail/mail-fixtures'
import { advanceClock, createSignedInClient, MINUTE, resetClock } from '../session-fixtures'
import { createAuthenticator, createPasskeyFixture, registerPasskey, signInWithPasskey } from './passkey-fixtures'

afterEach(resetClock)

const FACTOR_REQUIRED = [401, 'SECOND_FACTOR_REQUIRED']

/** A user with a password, TOTP and a passkey. */
async function createFactorsFixture() {
  const home = await createMailFixture()
  const { ada, anonymous, origin } = home
  const device = createAuthenticator(origin)
  const registration = await registerPasskey(ada, device)
  const { secret } = (await ada.post('/me/totp')).body
  const code = () => codeAt(decodeBase32(secret), stepAt(now()))
  await ada.post('/me/totp/confirm', { code: code() })
  const byPassword = (more = {}) => anonymous.post('/signin', { username: 'ada', password, ...more })
  return { ...home, device, registration, code, byPassword }
}
let home: Awaited<ReturnType<typeof createFactorsFixture>>
beforeAll(async () => {
  home = await createFactorsFixture()
})

test('a passkey replaces both factors, and completes a sign-in by password as its second factor', async () => {
  const { anonymous, device, byPassword, user, ada } = home
  expect((await signInWithPasskey(anonymous, device)).body.payload.user._id).toBe(user._id)
  const workspace = (await ada.post('/workspaces', { name: 'Office' })).body._id
  const passwordStep = await byPassword({ authType: 'oauth', workspace })
  expect(statusAndCode(passwordStep)).toEqual(FACTOR_REQUIRED)
  const { challenge } = passwordStep.body.details
  const options = (await anonymous.post('/signin/passkey/options', { challenge })).body
  expect(options.allowCredentials).toEqual([{ id: device.id, type: 'public-key', transports: ['internal', 'hybrid'] }])
  const answered = await anonymous.post('/signin/passkey', { credential: device.get(options), challenge })
  // The sign-in gets the token type and workspace that it requested.
  expect(answered.body.payload).toMatchObject({
    ...{ token: expect.any(String), refreshToken: expect.any(String) },
    ...{ user: { username: 'ada' }, workspace: { _id: workspace } },
  })
  const again = await signInWithPasskey(anonymous, device, {}, { challenge })
  expect(statusAndCode(again)).toEqual([401, 'INVALID_CHALLENGE'])
  expect(statusAndCode(await anonymous.post('/signin/passkey/options', { challenge }))).toEqual([
    401,
    'INVALID_CHALLENGE',
  ])
})

test('the password of one user and the passkey of another get 401 INVALID_PASSKEY', async () => {
  const { byPassword, anonymous, origin, code } = home
  advanceClock(2 * MINUTE)
  const thief = createAuthenticator(origin)
  await registerPasskey(await createSignedInClient(home, 'other'), thief)
  const { challenge } = (await byPassword()).body.details
  const answer = await signInWithPasskey(anonymous, thief, {}, { challenge })
  expect([...statusAndCode(answer), answer.headers.get('set-cookie')]).toEqual([401, 'INVALID_PASSKEY', null])
  // The owner of the password can still complete the sign-in.
  expect((await anonymous.post('/signin', { challenge, code: code() })).status).toBe(200)
})

test('a user with TOTP needs a code, not the password, to start a passkey registration', async () => {
  const { ada, code } = home
  advanceClock(11 * MINUTE)
  const start = (proof?: object) => ada.post('/me/passkeys/options', proof)
  const refused = await start({ currentPassword: password })
  expect([...statusAndCode(refused), refused.body.details]).toEqual([403, 'PROOF_REQUIRED', { by: 'code' }])
  expect(statusAndCode(await start({ code: '000000' }))).toEqual([403, 'INVALID_CODE'])
  const right = code()
  expect((await start({ code: right })).status).toBe(200)
  expect(statusAndCode(await start({ code: right }))).toEqual([403, 'INVALID_CODE'])
})

test('POST /api/signin/passkey/options gets 404 PASSKEY_NOT_FOUND for a user without passkeys', async () => {
  const { byPassword, anonymous, ada, registration } = home
  const { challenge } = (await byPassword()).body.details
  expect((await ada.delete(`/me/passkeys/${registration.body._id}`)).status).toBe(200)
  const refused = await anonymous.post('/signin/passkey/options', { challenge })
  expect(statusAndCode(refused)).toEqual([404, 'PASSKEY_NOT_FOUND'])
})

test('a passkey still signs in after a password reset by mail', async () => {
  const { anonymous, ada, origin, tokenOf, verify } = await createMailFixture()
  await verify()
  const device = createAuthenticator(origin)
  await registerPasskey(ada, device)
  await anonymous.post('/password/forgot', { email: 'ada@lovelace.test' })
  const token = await tokenOf('passwordReset')
  expect((await anonymous.post('/password/reset', { token, password: 'battery staple' })).status).toBe(200)
  expect((await signInWithPasskey(anonymous, device)).status).toBe(200)
})

test('deleting a user deletes their passkeys, and challenges are not stored in plain text', async () => {
  const { as, users, tenant, anonymous, device, person } = await createPasskeyFixture()
  const { challenge } = (await anonymous.post('/signin/passkey/options')).body
  const { challenge: registrationChallenge } = (await person.post('/me/passkeys/options')).body
  const storedChallenges = JSON.stringify(await tenant.db.query('select * from passkey_challenges'))
  for (const text of [challenge, registrationChallenge]) expect(storedChallenges).not.toContain(text)
  expect((await as('admin').delete(`/users/${users.user}`)).status).toBe(200)
  expect(statusAndCode(await signInWithPasskey(anonymous, device))).toEqual([401, 'INVALID_PASSKEY'])
  expect(await tenant.db.query('select count(*) from passkeys')).toEqual([[0]])
})

test('unanswered passkey challenges are deleted after they have expired', async () => {
  const { tenant, anonymous } = await createTestTenant()
  await anonymous.post('/signin/passkey/options')
  const count = async () => (await tenant.db.query('select count(*) from passkey_challenges'))[0]![0]
  const clean = () => withLease(tenant, 'test', removeExpired)
  await clean()
  expect(await count()).toBe(1)
  advanceClock(6 * MINUTE)
  await clean()
  expect(await count()).toBe(0)
})
