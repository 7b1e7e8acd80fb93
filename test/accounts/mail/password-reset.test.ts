import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { revokeSignIns } from '../../../src/accounts/credential-revocation'
import { issueOneTimeToken } from '../../../src/accounts/one-time-tokens'
import { users } from '../../../src/accounts/tables'
import { runDueJobs } from '../../../src/jobs/runner'
import { writeInvalidating } from '../../../src/tenancy/cache'
import { INVALID_INPUT, INVALID_TOKEN } from '../../expectations'
import { useStandardPasswordCost } from '../../password-cost'
import { createTestTenant, statusAndCode, type TestResponse } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import { advanceClock, MINUTE, resetClock } from '../session-fixtures'
import { createMailFixture, password } from './mail-fixtures'

afterEach(resetClock)
// A reset happens while other requests hash a password.
useStandardPasswordCost()

const newPassword = 'battery staple'

async function createResetFixture() {
  const home = await createMailFixture()
  await home.verify()
  await home.anonymous.post('/password/forgot', { email: 'ADA@Lovelace.test' })
  const reset = (token: string, chosen = newPassword) =>
    home.anonymous.post('/password/reset', { token, password: chosen })
  const signIn = (givenPassword: string) => home.anonymous.post('/signin', { username: 'ada', password: givenPassword })
  const hash = await Bun.password.hash(newPassword)
  /** Starts a request that verifies a password, and resets the password while it does. */
  const replaceMeanwhile = async (begin: () => Promise<TestResponse>) => {
    const verify = spyOn(Bun.password, 'verify')
    const begun = begin()
    await waitUntil(async () => verify.mock.calls.length > 0)
    verify.mockRestore()
    await writeInvalidating(home.tenant, 'actors', async (tx) => {
      await revokeSignIns(tx, home.user._id)
      await tx.update(users).set({ password: hash }).where(eq(users._id, home.user._id))
    })
    return begun
  }
  return { ...home, reset, signIn, replaceMeanwhile }
}

describe('POST /api/password/reset', () => {
  test('a password reset by mail sets the password and ends every session', async () => {
    const { ada, tokenOf, reset, signIn } = await createResetFixture()
    const answer = await reset(await tokenOf('passwordReset'))
    expect([answer.status, answer.body]).toEqual([200, { success: true }])
    expect((await ada.get('/me')).status).toBe(401)
    expect(statusAndCode(await signIn(password))).toEqual([401, 'INVALID_CREDENTIALS'])
    expect((await signIn(newPassword)).body.payload.user.username).toBe('ada')
  })

  test('the code of the mail resets the password once, and a wrong or malformed request leaves it valid', async () => {
    const { anonymous, codeOf, tokenOf, reset, signIn, email } = await createResetFixture()
    const [code, token] = [await codeOf('passwordReset'), await tokenOf('passwordReset')]
    const resetByCode = (change: object) =>
      anonymous.post('/password/reset', { email, password: newPassword, ...change })
    expect(statusAndCode(await resetByCode({ code: '1' }))).toEqual([400, 'INVALID_CODE'])
    expect(statusAndCode(await resetByCode({ code, email: 'nobody@lovelace.test' }))).toEqual([400, 'INVALID_CODE'])
    for (const change of [{ code, password: 'short' }, {}])
      expect(statusAndCode(await resetByCode(change))).toEqual(INVALID_INPUT)
    const answers = await Promise.all([1, 2].map(() => resetByCode({ code })))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400])
    expect(statusAndCode(await reset(token))).toEqual(INVALID_TOKEN)
    expect((await signIn(newPassword)).body.payload.user.username).toBe('ada')
  })

  test('a password reset requires a verified address; otherwise no mail is sent and tokens get 400 INVALID_TOKEN', async () => {
    const { anonymous, outbox, tokenOf, tenant, user } = await createMailFixture()
    expect((await anonymous.post('/password/forgot', { email: 'ada@lovelace.test' })).status).toBe(200)
    await runDueJobs(tenant)
    expect((await outbox()).map(({ template }: { template: string }) => template)).toEqual(['verification'])
    // A token from a time when the address was verified is rejected, too.
    const data = { emailKey: 'ada@lovelace.test' }
    const token = await tenant.write((tx) => issueOneTimeToken(tx, 'passwordReset', user._id, data))
    expect(statusAndCode(await anonymous.post('/password/reset', { token, password: newPassword }))).toEqual(
      INVALID_TOKEN,
    )
    await anonymous.post('/email/verify', { token: await tokenOf('verification') })
    expect((await anonymous.post('/password/forgot', { email: 'ada@lovelace.test' })).status).toBe(200)
    await runDueJobs(tenant)
    expect((await outbox()).map(({ template }: { template: string }) => template)).toContain('passwordReset')
  })

  test('a password reset works with an address that an admin set', async () => {
    const { as, anonymous, tokenOf } = await createMailFixture()
    const person = { username: 'grace', email: 'grace@navy.test', password }
    expect((await as('admin').post('/users', person)).status).toBe(201)
    await anonymous.post('/password/forgot', { email: 'grace@navy.test' })
    const answer = await anonymous.post('/password/reset', {
      token: await tokenOf('passwordReset'),
      password: newPassword,
    })
    expect(answer.status).toBe(200)
    expect((await anonymous.post('/signin', { username: 'grace', password: newPassword })).status).toBe(200)
  })

  test('POST /api/password/forgot responds alike for all addresses and sends mail only to existing users', async () => {
    const { anonymous, outbox, tenant, verify } = await createMailFixture()
    await verify()
    const requestReset = (email: string) => anonymous.post('/password/forgot', { email })
    const answers = [await requestReset('ada@lovelace.test'), await requestReset('nobody@lovelace.test')]
    expect(answers.map(({ status, body }) => [status, body])).toEqual(answers.map(() => [200, { success: true }]))
    // The work before the response is the same, too: the user is looked up later.
    const jobs = await tenant.db.query("select kind, count(*) from jobs where kind <> 'mail' group by kind")
    expect(jobs).toEqual([['forgotten-password', 2]])
    await runDueJobs(tenant)
    const sent = (await outbox()).filter(({ template }: { template: string }) => template === 'passwordReset')
    expect(sent.map(({ to }: { to: string }) => to)).toEqual(['ada@lovelace.test'])
    expect(statusAndCode(await anonymous.post('/password/forgot', { email: 'nobody' }))).toEqual(INVALID_INPUT)
  })

  test('the eleventh POST /api/password/forgot within ten minutes gets 429 RATE_LIMITED, for known and unknown addresses', async () => {
    for (const email of ['ada@lovelace.test', 'nobody@lovelace.test']) {
      const { anonymous } = await createMailFixture()
      const requestReset = () => anonymous.post('/password/forgot', { email })
      for (let n = 0; n < 10; n++) expect((await requestReset()).status).toBe(200)
      expect(statusAndCode(await requestReset())).toEqual([429, 'RATE_LIMITED'])
      // Sign-ins are not limited by that.
      expect((await anonymous.post('/signin', { username: 'ada', password })).status).toBe(200)
      advanceClock(11 * MINUTE)
      expect((await requestReset()).status).toBe(200)
      resetClock()
    }
  })

  test('a reset token is accepted once, even in simultaneous requests, and invalidates older tokens', async () => {
    const { anonymous, tokenOf, reset } = await createResetFixture()
    const older = await tokenOf('passwordReset')
    await anonymous.post('/password/forgot', { email: 'ada@lovelace.test' })
    const token = await tokenOf('passwordReset')
    expect(token).not.toBe(older)
    const answers = await Promise.all([reset(token), reset(token)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400])
    for (const spent of [token, older]) expect(statusAndCode(await reset(spent))).toEqual(INVALID_TOKEN)
  })

  test('a password reset revokes all API tokens of the user and of nobody else', async () => {
    const { ada, as, anonymous, tokenOf, reset } = await createResetFixture()
    const key = (await ada.post('/me/api-tokens', { nickname: 'theirs' })).body.token
    expect((await anonymous.get('/me', { 'x-api-key': key })).status).toBe(200)
    await reset(await tokenOf('passwordReset'))
    expect((await anonymous.get('/me', { 'x-api-key': key })).status).toBe(401)
    expect((await as('user').get('/me')).status).toBe(200)
  })

  test('a sign-in by the old password that is running during a reset gets 401 INVALID_CREDENTIALS', async () => {
    const { signIn, anonymous, replaceMeanwhile } = await createResetFixture()
    const answer = await replaceMeanwhile(() => signIn(password))
    expect(statusAndCode(answer)).toEqual([401, 'INVALID_CREDENTIALS'])
    expect(answer.headers.getSetCookie()).toEqual([])
    const person = { username: 'ada', password: newPassword, authType: 'oauth' }
    expect((await anonymous.post('/signin', person)).status).toBe(200)
  })

  test.each([
    ['an API token', '/me/api-tokens', { nickname: 'theirs' }],
    ['another e-mail address', '/me', { email: 'eve@x.test' }],
    ['another password', '/me', { password: 'of an intruder' }],
    ['a second factor', '/me/totp', {}],
  ])('a request for %s that is running during a reset gets 401 UNAUTHENTICATED', async (_, path, body) => {
    const { ada, signIn, replaceMeanwhile } = await createResetFixture()
    const answer = await replaceMeanwhile(() => ada.post(path, { ...body, currentPassword: password }))
    expect(statusAndCode(answer)).toEqual([401, 'UNAUTHENTICATED'])
    expect((await signIn(newPassword)).body.payload.user.email).toBe('ada@lovelace.test')
  })

  test('a reset token is valid for one hour, at one tenant and for one purpose', async () => {
    const { tokenOf, reset, anonymous, signIn } = await createResetFixture()
    const [token, verificationToken] = [await tokenOf('passwordReset'), await tokenOf('verification')]
    const otherTenant = await createTestTenant()
    expect(
      statusAndCode(await otherTenant.anonymous.post('/password/reset', { token, password: newPassword })),
    ).toEqual(INVALID_TOKEN)
    expect(statusAndCode(await reset(verificationToken))).toEqual(INVALID_TOKEN)
    expect(statusAndCode(await anonymous.post('/email/verify', { token }))).toEqual(INVALID_TOKEN)
    advanceClock(61 * MINUTE)
    expect(statusAndCode(await reset(token))).toEqual(INVALID_TOKEN)
    expect((await signIn(password)).status).toBe(200)
  })

  test('a reset token gets 400 INVALID_TOKEN after the user has changed the password', async () => {
    const { ada, tokenOf, reset } = await createResetFixture()
    const token = await tokenOf('passwordReset')
    expect((await ada.post('/me', { password: 'battery staple', currentPassword: password })).status).toBe(200)
    expect(statusAndCode(await reset(token))).toEqual(INVALID_TOKEN)
  })

  test('an invalid new password gets 400 INVALID_INPUT and leaves the reset token valid', async () => {
    const { tokenOf, reset } = await createResetFixture()
    const token = await tokenOf('passwordReset')
    expect(statusAndCode(await reset(token, 'short'))).toEqual(INVALID_INPUT)
    expect(statusAndCode(await reset(token, 'x'.repeat(257)))).toEqual(INVALID_INPUT)
    expect((await reset(token)).status).toBe(200)
  })

  test('a reset token gets 400 INVALID_TOKEN after the user has changed their address', async () => {
    const { ada, tokenOf, reset } = await createResetFixture()
    const token = await tokenOf('passwordReset')
    await ada.post('/me', { email: 'countess@lovelace.test' })
    expect(statusAndCode(await reset(token))).toEqual(INVALID_TOKEN)
  })
})

describe('a sign-in from a new device', () => {
  const from = (agent: string) => ({ 'user-agent': agent })

  test('a sign-in from a new device is reported to the user by mail, once per device', async () => {
    const { anonymous, tokenOf, outbox } = await createMailFixture()
    await anonymous.post('/email/verify', { token: await tokenOf('verification') })
    const signIn = (agent: string) => anonymous.post('/signin', { username: 'ada', password }, from(agent))
    await signIn('Netscape 4')
    await signIn('Netscape 4')
    const notices = (await outbox()).filter(({ template }: { template: string }) => template === 'newDevice')
    expect(notices).toHaveLength(1)
    expect(notices[0]).toMatchObject({ to: 'ada@lovelace.test', subject: expect.stringContaining('A new sign-in at') })
    expect(notices[0].text).toContain('\nNetscape 4\n')
  })

  test('a sign-in from a new device is not reported to an unverified address', async () => {
    const { anonymous, outbox } = await createMailFixture()
    await anonymous.post('/signin', { username: 'ada', password }, from('Netscape 4'))
    expect((await outbox()).map(({ template }: { template: string }) => template)).toEqual(['verification'])
  })
})
