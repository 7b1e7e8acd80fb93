import { afterEach, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { issueApiToken } from '../../../src/accounts/api-tokens'
import { issueDeviceCookie } from '../../../src/accounts/device-cookie'
import { completeFirstFactor } from '../../../src/accounts/signin'
import { oneTimeTokens, users } from '../../../src/accounts/tables'
import { codeAt, decodeBase32, stepAt } from '../../../src/accounts/totp/codes'
import { getUser } from '../../../src/accounts/users/users'
import { now } from '../../../src/core/clock'
import { setServer } from '../../../src/tenancy/client-connection'
import { errorOf } from '../../rejections'
import { callApi, createTestTenant, statusAndCode, type TestResponse } from '../../test-tenant'
import { createMailFixture, password } from '../mail/mail-fixtures'
import { advanceClock, bearer, MINUTE, resetClock } from '../session-fixtures'

afterEach(resetClock)

const WRONG_CODE = [403, 'INVALID_CODE']
const REFUSED_CODE = [401, 'INVALID_CODE']
const FACTOR_REQUIRED = [401, 'SECOND_FACTOR_REQUIRED']

/** A user with confirmed TOTP, and the codes of their authenticator app. */
async function createTotpFixture() {
  const fixture = await createMailFixture()
  const { ada, anonymous } = fixture
  const { secret, uri } = (await ada.post('/me/totp')).body
  const code = () => codeAt(decodeBase32(secret), stepAt(now()))
  const confirmed = await ada.post('/me/totp/confirm', { code: code() })
  advanceClock(MINUTE)
  const signIn = (more = {}) => anonymous.post('/signin', { username: 'ada', password, ...more })
  const createChallenge = async (more = {}) => (await signIn(more)).body.details.challenge as string
  const answer = (challenge: string, code: string, more: Record<string, string> = {}) =>
    anonymous.post('/signin', { challenge, code }, more)
  const device = {
    cookie: (await issueDeviceCookie(new Request(fixture.origin), fixture.tenant, fixture.user._id)).split(';')[0]!,
  }
  const remove = (code: string) =>
    callApi('DELETE', `${fixture.origin}/api/me/totp`, { headers: bearer(fixture.token), body: { code } })
  return {
    ...fixture,
    secret,
    uri,
    code,
    confirmed,
    signIn,
    createChallenge,
    answer,
    remove,
    device,
    recovery: confirmed.body.recoveryCodes,
  }
}

describe('TOTP as a second factor', () => {
  test('TOTP is required at sign-in only after POST /api/me/totp/confirm has received a valid code', async () => {
    const { ada, anonymous, user } = await createMailFixture()
    const { status, body, headers } = await ada.post('/me/totp')
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(body).toEqual({
      secret: expect.stringMatching(/^[A-Z2-7]{32}$/),
      uri: expect.stringContaining(`secret=${body.secret}`),
    })
    expect((await ada.get('/me/totp')).body).toEqual({ enabled: false, recoveryCodes: 0 })
    expect((await anonymous.post('/signin', { username: 'ada', password })).status).toBe(200)
    expect(statusAndCode(await ada.post('/me/totp/confirm', { code: '000000' }))).toEqual(WRONG_CODE)
    const code = codeAt(decodeBase32(body.secret), stepAt(now()))
    const confirmed = await ada.post('/me/totp/confirm', { code: `${code.slice(0, 3)} ${code.slice(3)}` })
    expect(confirmed.headers.get('cache-control')).toBe('no-store')
    expect(confirmed.body.recoveryCodes).toHaveLength(10)
    for (const one of confirmed.body.recoveryCodes) expect(one).toMatch(/^([a-z2-7]{4}-){3}[a-z2-7]{4}$/)
    expect((await ada.get('/me/totp')).body).toEqual({ enabled: true, recoveryCodes: 10 })
    expect(statusAndCode(await anonymous.post('/signin', { username: 'ada', password }))).toEqual(FACTOR_REQUIRED)
    expect(user.username).toBe('ada')
  })

  test('a sign-in with TOTP first gets 401 SECOND_FACTOR_REQUIRED and, with a code, the requested tokens or cookie', async () => {
    const { signIn, answer, createChallenge, code } = await createTotpFixture()
    const first = await signIn({ authType: 'oauth' })
    expect(statusAndCode(first)).toEqual(FACTOR_REQUIRED)
    expect(first.headers.get('set-cookie')).toBeNull()
    expect(first.headers.get('cache-control')).toBe('no-store')
    expect(JSON.stringify(first.body)).not.toContain('"token"')
    const oauth = await answer(first.body.details.challenge, code())
    expect(oauth.body.payload).toMatchObject({ user: { username: 'ada' }, token: expect.any(String) })
    advanceClock(MINUTE)
    const cookie = await answer(await createChallenge(), code())
    expect([cookie.status, cookie.headers.get('set-cookie')]).toEqual([200, expect.stringContaining('HttpOnly')])
    expect(cookie.body.payload.token).toBeUndefined()
  })

  test('a password that was replaced while it was verified gets 401 INVALID_CREDENTIALS and no challenge', async () => {
    const { tenant, user, origin } = await createTotpFixture()
    const verified = await getUser(tenant, user._id)
    await tenant.write((tx) => tx.update(users).set({ password: 'another hash' }).where(eq(users._id, user._id)))
    const signedIn = completeFirstFactor(tenant, verified, undefined, new Request(origin))
    expect(await errorOf(signedIn)).toMatchObject({ status: 401, code: 'INVALID_CREDENTIALS' })
    expect(await tenant.db.$count(oneTimeTokens, eq(oneTimeTokens.purpose, 'secondFactor'))).toBe(0)
  })

  test('a sign-in with a wrong password gets 401 INVALID_CREDENTIALS although the user has TOTP', async () => {
    const { signIn } = await createTotpFixture()
    expect(statusAndCode(await signIn({ password: 'wrong horse' }))).toEqual([401, 'INVALID_CREDENTIALS'])
  })

  test('a sign-in after a password reset by mail still gets 401 SECOND_FACTOR_REQUIRED', async () => {
    const { anonymous, tokenOf, signIn, verify } = await createTotpFixture()
    await verify()
    await anonymous.post('/password/forgot', { email: 'ada@lovelace.test' })
    const token = await tokenOf('passwordReset')
    await anonymous.post('/password/reset', { token, password: 'battery staple' })
    expect(statusAndCode(await signIn({ password: 'battery staple' }))).toEqual(FACTOR_REQUIRED)
  })

  test('a code is accepted once, even by two simultaneous sign-ins, and older codes get 401 INVALID_CODE', async () => {
    const { answer, createChallenge, code, secret } = await createTotpFixture()
    const [one, two] = [await createChallenge(), await createChallenge()]
    const answers = await Promise.all([answer(one, code()), answer(two, code())])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401])
    const losingChallenge = answers[0]!.status === 200 ? two : one
    expect(statusAndCode(await answer(losingChallenge, code()))).toEqual(REFUSED_CODE)
    expect(statusAndCode(await answer(losingChallenge, codeAt(decodeBase32(secret), stepAt(now()) - 1)))).toEqual(
      REFUSED_CODE,
    )
    advanceClock(MINUTE)
    expect((await answer(losingChallenge, code())).status).toBe(200)
  })

  test('a challenge is accepted once, within five minutes and at its own tenant; otherwise it gets 401 INVALID_CHALLENGE', async () => {
    const { answer, createChallenge, code } = await createTotpFixture()
    const INVALID_CHALLENGE = [401, 'INVALID_CHALLENGE']
    const challenge = await createChallenge()
    const otherTenant = await createTestTenant()
    expect(statusAndCode(await otherTenant.anonymous.post('/signin', { challenge, code: code() }))).toEqual(
      INVALID_CHALLENGE,
    )
    expect((await answer(challenge, code())).status).toBe(200)
    advanceClock(MINUTE)
    expect(statusAndCode(await answer(challenge, code()))).toEqual(INVALID_CHALLENGE)
    const late = await createChallenge()
    advanceClock(6 * MINUTE)
    expect(statusAndCode(await answer(late, code()))).toEqual(INVALID_CHALLENGE)
    expect(statusAndCode(await answer('nonsense', code()))).toEqual(INVALID_CHALLENGE)
  })

  test('the eleventh code after ten wrong ones gets 429 RATE_LIMITED, and sign-in works again eleven minutes later', async () => {
    const { answer, createChallenge, code } = await createTotpFixture()
    const challenge = await createChallenge()
    const wrong = code() === '123456' ? '654321' : '123456'
    for (let n = 0; n < 10; n++) expect(statusAndCode(await answer(challenge, wrong))).toEqual(REFUSED_CODE)
    expect(statusAndCode(await answer(challenge, code()))).toEqual([429, 'RATE_LIMITED'])
    advanceClock(11 * MINUTE)
    expect((await answer(await createChallenge(), code())).status).toBe(200)
  })

  test('ten wrong codes from different addresses, at sign-in or DELETE /api/me/totp, make further codes get 429 RATE_LIMITED', async () => {
    const { answer, createChallenge, remove, recovery } = await createTotpFixture()
    let address = ''
    setServer({ requestIP: () => ({ address, family: 'IPv4', port: 1 }) })
    try {
      for (let n = 0; n < 10; n++) {
        address = `192.0.2.${n}`
        const wrong = n % 2 ? '123456' : 'aaaa-bbbb-cccc-dddd'
        const refused =
          n < 7 ? [await answer(await createChallenge(), wrong), REFUSED_CODE] : [await remove(wrong), WRONG_CODE]
        expect(statusAndCode(refused[0] as TestResponse)).toEqual(refused[1] as unknown[])
      }
      address = '192.0.2.99'
      expect(statusAndCode(await answer(await createChallenge(), recovery[0]))).toEqual([429, 'RATE_LIMITED'])
      expect(statusAndCode(await remove(recovery[0]))).toEqual([429, 'RATE_LIMITED'])
    } finally {
      setServer(undefined)
    }
  })

  test('a known device can enter nine wrong codes and sign in after other devices have used up their ten attempts', async () => {
    const { answer, createChallenge, code, device } = await createTotpFixture()
    const wrong = code() === '123456' ? '654321' : '123456'
    const challenge = await createChallenge()
    for (let n = 0; n < 10; n++) expect(statusAndCode(await answer(challenge, wrong))).toEqual(REFUSED_CODE)
    expect(statusAndCode(await answer(challenge, code()))).toEqual([429, 'RATE_LIMITED'])
    for (let n = 0; n < 9; n++) expect(statusAndCode(await answer(challenge, wrong, device))).toEqual(REFUSED_CODE)
    expect((await answer(challenge, code(), device)).status).toBe(200)
  })

  test('ten wrong codes on a known device make codes on every device get 429 RATE_LIMITED', async () => {
    const { answer, createChallenge, code, device } = await createTotpFixture()
    const wrong = code() === '123456' ? '654321' : '123456'
    const challenge = await createChallenge()
    for (let n = 0; n < 10; n++) expect(statusAndCode(await answer(challenge, wrong, device))).toEqual(REFUSED_CODE)
    for (const cookie of [device, {}])
      expect(statusAndCode(await answer(challenge, code(), cookie))).toEqual([429, 'RATE_LIMITED'])
  })

  test('a recovery code signs the user in once, in upper case and with spaces instead of hyphens, too', async () => {
    const { answer, createChallenge, recovery, ada } = await createTotpFixture()
    const challenge = await createChallenge()
    expect((await answer(challenge, recovery[0].toUpperCase().replaceAll('-', ' '))).status).toBe(200)
    expect(statusAndCode(await answer(await createChallenge(), recovery[0]))).toEqual(REFUSED_CODE)
    expect((await ada.get('/me/totp')).body.recoveryCodes).toBe(9)
  })

  test('simultaneous sign-ins with one recovery code or one challenge succeed once, and the unused code stays valid', async () => {
    const { answer, createChallenge, recovery } = await createTotpFixture()
    const [one, two] = [await createChallenge(), await createChallenge()]
    const same = await Promise.all([answer(one, recovery[0]), answer(two, recovery[0])])
    expect(same.map(({ status }) => status).sort()).toEqual([200, 401])
    const challenge = await createChallenge()
    const both = await Promise.all([answer(challenge, recovery[1]), answer(challenge, recovery[2])])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 401])
    const unusedCode = both[0]!.status === 200 ? recovery[2] : recovery[1]
    expect((await answer(await createChallenge(), unusedCode)).status).toBe(200)
  })

  test('a challenge gets 401 INVALID_CHALLENGE after the user or an admin has changed the password', async () => {
    const { answer, createChallenge, ada, as, user, code, anonymous } = await createTotpFixture()
    const old = await createChallenge()
    expect((await ada.post('/me', { password: 'battery staple', currentPassword: password })).status).toBe(200)
    const INVALID_CHALLENGE = [401, 'INVALID_CHALLENGE']
    expect(statusAndCode(await answer(old, code()))).toEqual(INVALID_CHALLENGE)
    const { body } = await anonymous.post('/signin', { username: 'ada', password: 'battery staple' })
    await as('admin').put(`/users/${user._id}`, { password: 'paper clip box' })
    expect(statusAndCode(await answer(body.details.challenge, code()))).toEqual(INVALID_CHALLENGE)
  })

  test('DELETE /api/me/totp accepts a current code or a recovery code of the user and rejects others with 403 INVALID_CODE', async () => {
    const { remove, code, ada, signIn, tenant, recovery } = await createTotpFixture()
    expect(statusAndCode(await remove('000000'))).toEqual(WRONG_CODE)
    expect((await remove(code())).body).toEqual({ success: true })
    expect((await ada.get('/me/totp')).body).toEqual({ enabled: false, recoveryCodes: 0 })
    expect((await signIn()).status).toBe(200)
    expect(await tenant.db.query("select count(*) from sealed where purpose = 'totp'")).toEqual([[0]])
    expect(statusAndCode(await remove(code()))).toEqual([404, 'TOTP_NOT_FOUND'])
    const again = await createTotpFixture()
    expect(statusAndCode(await again.remove(recovery[0]))).toEqual(WRONG_CODE)
    expect((await again.remove(again.recovery[0])).status).toBe(200)
  })

  test('POST /api/me/totp and its confirmation get 409 TOTP_EXISTS once TOTP is confirmed', async () => {
    const { ada, code } = await createTotpFixture()
    for (const answer of [await ada.post('/me/totp'), await ada.post('/me/totp/confirm', { code: code() })])
      expect(statusAndCode(answer)).toEqual([409, 'TOTP_EXISTS'])
  })

  test('two simultaneous confirmations of TOTP get 200 and 409', async () => {
    const { ada } = await createMailFixture()
    const code = codeAt(decodeBase32((await ada.post('/me/totp')).body.secret), stepAt(now()))
    const both = await Promise.all([1, 2].map(() => ada.post('/me/totp/confirm', { code })))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
    expect((await ada.get('/me/totp')).body).toEqual({ enabled: true, recoveryCodes: 10 })
  })

  test('a restarted TOTP setup is confirmed by the newest secret only; a code of the older one gets 403 INVALID_CODE', async () => {
    const { ada } = await createMailFixture()
    const codeOf = ({ body }: { body: { secret: string } }) => codeAt(decodeBase32(body.secret), stepAt(now()))
    expect(statusAndCode(await ada.post('/me/totp/confirm', { code: '123456' }))).toEqual([404, 'TOTP_NOT_FOUND'])
    const old = await ada.post('/me/totp')
    const fresh = await ada.post('/me/totp')
    expect(statusAndCode(await ada.post('/me/totp/confirm', { code: codeOf(old) }))).toEqual(WRONG_CODE)
    expect((await ada.post('/me/totp/confirm', { code: codeOf(fresh) })).status).toBe(200)
  })

  test('TOTP settings require a session of the user, and only an admin of the tenant can remove TOTP of another user', async () => {
    const { as, anonymous, user, signIn } = await createTotpFixture()
    expect(statusAndCode(await anonymous.get('/me/totp'))).toEqual([401, 'UNAUTHENTICATED'])
    expect(statusAndCode(await as('user').post('/me/totp'))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await as('user').delete(`/users/${user._id}/totp`))).toEqual([403, 'FORBIDDEN'])
    const otherTenant = await createTestTenant()
    const fromOtherTenant = await otherTenant.as('admin').delete(`/users/${user._id}/totp`)
    expect(statusAndCode(fromOtherTenant)).toEqual([404, 'USER_NOT_FOUND'])
    expect(statusAndCode(await signIn())).toEqual(FACTOR_REQUIRED)
    expect((await as('admin').delete(`/users/${user._id}/totp`)).status).toBe(200)
    expect((await signIn()).status).toBe(200)
  })

  test('an admin cannot remove their own TOTP by DELETE /api/users/:id/totp, whatever credential or impersonation they use', async () => {
    const { as, anonymous, tenant, token: ada, user, signIn } = await createTotpFixture()
    const { _id } = (await as('admin').post('/users', { username: 'grace', roles: ['admin'] })).body
    await as('admin').put(`/users/${user._id}`, { roles: ['admin'] })
    const { token } = await issueApiToken(tenant, user._id, { nickname: 'leaked', scopes: ['accounts:write'] })
    for (const credential of [bearer(ada), { 'x-api-key': token }])
      for (const impersonated of ['', _id])
        expect(
          statusAndCode(
            await anonymous.delete(`/users/${user._id}/totp`, { ...credential, 'x-impersonate-user': impersonated }),
          ),
        ).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await signIn())).toEqual(FACTOR_REQUIRED)
  })

  test('the database contains neither the TOTP secret nor a recovery code in plain text', async () => {
    const { tenant, secret, recovery } = await createTotpFixture()
    const all = []
    for (const table of ['totp', 'recovery_codes', 'sealed', 'jobs', 'mails'])
      all.push(await tenant.db.query(`select * from ${table}`))
    const text = JSON.stringify(all)
    for (const hidden of [secret, recovery[0], recovery[0].replaceAll('-', '')]) expect(text).not.toContain(hidden)
  })
})
