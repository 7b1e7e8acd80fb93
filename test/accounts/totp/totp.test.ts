import { afterEach, describe, expect, test } from 'bun:test'
import { issueApiToken } from '../../../src/accounts/api-tokens'
import { issueDeviceCookie } from '../../../src/accounts/device-cookie'
import { codeAt, decodeBase32, stepAt } from '../../../src/accounts/totp/codes'
import { now } from '../../../src/core/clock'
import { setServer } from '../../../src/tenancy/client-connection'
import { callApi, createTestTenant, statusAndCode, type TestResponse } from '../../test-tenant'
import { createMailFixture, password } from '../mail/mail-fixtures'
import { advanceClock, bearer, MINUTE, resetClock } from '../session-fixtures'

afterEach(resetClock)

const WRONG_CODE = [403, 'INVALID_CODE']
const REFUSED_CODE = [401, 'INVALID_CODE']
const FACTOR_REQUIRED = [401, 'SECOND_FACTOR_REQUIRED']

/** Somebody with a second factor, and their authenticator app. */
async function createTotpFixture() {
  const home = await createMailFixture()
  const { ada, stranger } = home
  const { secret, uri } = (await ada.post('/me/totp')).body
  const code = () => codeAt(decodeBase32(secret), stepAt(now()))
  const confirmed = await ada.post('/me/totp/confirm', { code: code() })
  advanceClock(MINUTE)
  const signIn = (more = {}) => stranger.post('/signin', { username: 'ada', password, ...more })
  const challenged = async (more = {}) => (await signIn(more)).body.details.challenge as string
  const answer = (challenge: string, code: string, more: Record<string, string> = {}) =>
    stranger.post('/signin', { challenge, code }, more)
  const device = {
    cookie: (await issueDeviceCookie(new Request(home.origin), home.tenant, home.user._id)).split(';')[0]!,
  }
  const remove = (code: string) =>
    callApi('DELETE', `${home.origin}/api/me/totp`, { headers: bearer(home.token), body: { code } })
  return {
    ...home,
    secret,
    uri,
    code,
    confirmed,
    signIn,
    challenged,
    answer,
    remove,
    device,
    recovery: confirmed.body.recoveryCodes,
  }
}

describe('a second factor', () => {
  test('counts once it is confirmed by a code of it', async () => {
    const { ada, stranger, user } = await createMailFixture()
    const { status, body, headers } = await ada.post('/me/totp')
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(body).toEqual({
      secret: expect.stringMatching(/^[A-Z2-7]{32}$/),
      uri: expect.stringContaining(`secret=${body.secret}`),
    })
    expect((await ada.get('/me/totp')).body).toEqual({ enabled: false, recoveryCodes: 0 })
    expect((await stranger.post('/signin', { username: 'ada', password })).status).toBe(200)
    expect(statusAndCode(await ada.post('/me/totp/confirm', { code: '000000' }))).toEqual(WRONG_CODE)
    const code = codeAt(decodeBase32(body.secret), stepAt(now()))
    const confirmed = await ada.post('/me/totp/confirm', { code: `${code.slice(0, 3)} ${code.slice(3)}` })
    expect(confirmed.headers.get('cache-control')).toBe('no-store')
    expect(confirmed.body.recoveryCodes).toHaveLength(10)
    for (const one of confirmed.body.recoveryCodes) expect(one).toMatch(/^([a-z2-7]{4}-){3}[a-z2-7]{4}$/)
    expect((await ada.get('/me/totp')).body).toEqual({ enabled: true, recoveryCodes: 10 })
    expect(statusAndCode(await stranger.post('/signin', { username: 'ada', password }))).toEqual(FACTOR_REQUIRED)
    expect(user.username).toBe('ada')
  })

  test('is asked for at a sign-in, which then is what was asked for', async () => {
    const { signIn, answer, challenged, code } = await createTotpFixture()
    const first = await signIn({ authType: 'oauth' })
    expect(statusAndCode(first)).toEqual(FACTOR_REQUIRED)
    expect(first.headers.get('set-cookie')).toBeNull()
    expect(first.headers.get('cache-control')).toBe('no-store')
    expect(JSON.stringify(first.body)).not.toContain('"token"')
    const oauth = await answer(first.body.details.challenge, code())
    expect(oauth.body.payload).toMatchObject({ user: { username: 'ada' }, token: expect.any(String) })
    advanceClock(MINUTE)
    const cookie = await answer(await challenged(), code())
    expect([cookie.status, cookie.headers.get('set-cookie')]).toEqual([200, expect.stringContaining('HttpOnly')])
    expect(cookie.body.payload.token).toBeUndefined()
  })

  test('is not asked for who does not know the password', async () => {
    const { signIn } = await createTotpFixture()
    expect(statusAndCode(await signIn({ password: 'wrong horse' }))).toEqual([401, 'INVALID_CREDENTIALS'])
  })

  test('is asked for after a new password was chosen by mail, too', async () => {
    const { stranger, codeOf, signIn, verify } = await createTotpFixture()
    await verify()
    await stranger.post('/password/forgot', { email: 'ada@lovelace.test' })
    const token = await codeOf('passwordReset')
    await stranger.post('/password/reset', { token, password: 'battery staple' })
    expect(statusAndCode(await signIn({ password: 'battery staple' }))).toEqual(FACTOR_REQUIRED)
  })

  test('takes each code once, also of two that come at the same time, and none before the last', async () => {
    const { answer, challenged, code, secret } = await createTotpFixture()
    const [one, two] = [await challenged(), await challenged()]
    const answers = await Promise.all([answer(one, code()), answer(two, code())])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401])
    const left = answers[0]!.status === 200 ? two : one
    expect(statusAndCode(await answer(left, code()))).toEqual(REFUSED_CODE)
    expect(statusAndCode(await answer(left, codeAt(decodeBase32(secret), stepAt(now()) - 1)))).toEqual(REFUSED_CODE)
    advanceClock(MINUTE)
    expect((await answer(left, code())).status).toBe(200)
  })

  test('takes each challenge once, for five minutes, at its tenant', async () => {
    const { answer, challenged, code } = await createTotpFixture()
    const GONE = [401, 'INVALID_CHALLENGE']
    const challenge = await challenged()
    const abroad = await createTestTenant()
    expect(statusAndCode(await abroad.stranger.post('/signin', { challenge, code: code() }))).toEqual(GONE)
    expect((await answer(challenge, code())).status).toBe(200)
    advanceClock(MINUTE)
    expect(statusAndCode(await answer(challenge, code()))).toEqual(GONE)
    const late = await challenged()
    advanceClock(6 * MINUTE)
    expect(statusAndCode(await answer(late, code()))).toEqual(GONE)
    expect(statusAndCode(await answer('nonsense', code()))).toEqual(GONE)
  })

  test('is not found by trying', async () => {
    const { answer, challenged, code } = await createTotpFixture()
    const challenge = await challenged()
    const wrong = code() === '123456' ? '654321' : '123456'
    for (let n = 0; n < 10; n++) expect(statusAndCode(await answer(challenge, wrong))).toEqual(REFUSED_CODE)
    expect(statusAndCode(await answer(challenge, code()))).toEqual([429, 'RATE_LIMITED'])
    advanceClock(11 * MINUTE)
    expect((await answer(await challenged(), code())).status).toBe(200)
  })

  test('is not found by trying with a new challenge each time, from elsewhere each time, or where it is taken away', async () => {
    const { answer, challenged, remove, recovery } = await createTotpFixture()
    let address = ''
    setServer({ requestIP: () => ({ address, family: 'IPv4', port: 1 }) })
    try {
      for (let n = 0; n < 10; n++) {
        address = `192.0.2.${n}`
        const wrong = n % 2 ? '123456' : 'aaaa-bbbb-cccc-dddd'
        const refused =
          n < 7 ? [await answer(await challenged(), wrong), REFUSED_CODE] : [await remove(wrong), WRONG_CODE]
        expect(statusAndCode(refused[0] as TestResponse)).toEqual(refused[1] as unknown[])
      }
      address = '192.0.2.99'
      expect(statusAndCode(await answer(await challenged(), recovery[0]))).toEqual([429, 'RATE_LIMITED'])
      expect(statusAndCode(await remove(recovery[0]))).toEqual([429, 'RATE_LIMITED'])
    } finally {
      setServer(undefined)
    }
  })

  test('is asked on a known device although others have tried too often, and guesses there are ten as well', async () => {
    const { answer, challenged, code, device } = await createTotpFixture()
    const wrong = code() === '123456' ? '654321' : '123456'
    const challenge = await challenged()
    for (let n = 0; n < 10; n++) expect(statusAndCode(await answer(challenge, wrong))).toEqual(REFUSED_CODE)
    expect(statusAndCode(await answer(challenge, code()))).toEqual([429, 'RATE_LIMITED'])
    for (let n = 0; n < 9; n++) expect(statusAndCode(await answer(challenge, wrong, device))).toEqual(REFUSED_CODE)
    expect((await answer(challenge, code(), device)).status).toBe(200)
  })

  test('counts wrong guesses on a known device against all others, so that both together are no more than ten', async () => {
    const { answer, challenged, code, device } = await createTotpFixture()
    const wrong = code() === '123456' ? '654321' : '123456'
    const challenge = await challenged()
    for (let n = 0; n < 10; n++) expect(statusAndCode(await answer(challenge, wrong, device))).toEqual(REFUSED_CODE)
    for (const cookie of [device, {}])
      expect(statusAndCode(await answer(challenge, code(), cookie))).toEqual([429, 'RATE_LIMITED'])
  })

  test('can be done without by a recovery code, once each, however it is typed', async () => {
    const { answer, challenged, recovery, ada } = await createTotpFixture()
    const challenge = await challenged()
    expect((await answer(challenge, recovery[0].toUpperCase().replaceAll('-', ' '))).status).toBe(200)
    expect(statusAndCode(await answer(await challenged(), recovery[0]))).toEqual(REFUSED_CODE)
    expect((await ada.get('/me/totp')).body.recoveryCodes).toBe(9)
  })

  test('takes a recovery code once, also of two that come at the same time; who comes too late keeps theirs', async () => {
    const { answer, challenged, recovery } = await createTotpFixture()
    const [one, two] = [await challenged(), await challenged()]
    const same = await Promise.all([answer(one, recovery[0]), answer(two, recovery[0])])
    expect(same.map(({ status }) => status).sort()).toEqual([200, 401])
    const challenge = await challenged()
    const both = await Promise.all([answer(challenge, recovery[1]), answer(challenge, recovery[2])])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 401])
    const left = both[0]!.status === 200 ? recovery[2] : recovery[1]
    expect((await answer(await challenged(), left)).status).toBe(200)
  })

  test('is asked for anew when the password is another one', async () => {
    const { answer, challenged, ada, as, user, code, stranger } = await createTotpFixture()
    const old = await challenged()
    expect((await ada.post('/me', { password: 'battery staple', currentPassword: password })).status).toBe(200)
    const GONE = [401, 'INVALID_CHALLENGE']
    expect(statusAndCode(await answer(old, code()))).toEqual(GONE)
    const { body } = await stranger.post('/signin', { username: 'ada', password: 'battery staple' })
    await as('admin').put(`/users/${user._id}`, { password: 'paper clip box' })
    expect(statusAndCode(await answer(body.details.challenge, code()))).toEqual(GONE)
  })

  test('is taken away by a code of it or a recovery code, and by nothing else', async () => {
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

  test('cannot be replaced, or confirmed twice', async () => {
    const { ada, code } = await createTotpFixture()
    for (const answer of [await ada.post('/me/totp'), await ada.post('/me/totp/confirm', { code: code() })])
      expect(statusAndCode(answer)).toEqual([409, 'TOTP_EXISTS'])
  })

  test('is confirmed once, also by two at the same time', async () => {
    const { ada } = await createMailFixture()
    const code = codeAt(decodeBase32((await ada.post('/me/totp')).body.secret), stepAt(now()))
    const both = await Promise.all([1, 2].map(() => ada.post('/me/totp/confirm', { code })))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
    expect((await ada.get('/me/totp')).body).toEqual({ enabled: true, recoveryCodes: 10 })
  })

  test('that was begun anew is confirmed by the newest secret only', async () => {
    const { ada } = await createMailFixture()
    const codeOf = ({ body }: { body: { secret: string } }) => codeAt(decodeBase32(body.secret), stepAt(now()))
    expect(statusAndCode(await ada.post('/me/totp/confirm', { code: '123456' }))).toEqual([404, 'TOTP_NOT_FOUND'])
    const old = await ada.post('/me/totp')
    const fresh = await ada.post('/me/totp')
    expect(statusAndCode(await ada.post('/me/totp/confirm', { code: codeOf(old) }))).toEqual(WRONG_CODE)
    expect((await ada.post('/me/totp/confirm', { code: codeOf(fresh) })).status).toBe(200)
  })

  test('is a signed-in person’s own matter; an admin can take it away from who has lost it', async () => {
    const { as, stranger, user, signIn } = await createTotpFixture()
    expect(statusAndCode(await stranger.get('/me/totp'))).toEqual([401, 'UNAUTHENTICATED'])
    expect(statusAndCode(await as('user').post('/me/totp'))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await as('user').delete(`/users/${user._id}/totp`))).toEqual([403, 'FORBIDDEN'])
    const abroad = await createTestTenant()
    const elsewhere = await abroad.as('admin').delete(`/users/${user._id}/totp`)
    expect(statusAndCode(elsewhere)).toEqual([404, 'USER_NOT_FOUND'])
    expect(statusAndCode(await signIn())).toEqual(FACTOR_REQUIRED)
    expect((await as('admin').delete(`/users/${user._id}/totp`)).status).toBe(200)
    expect((await signIn()).status).toBe(200)
  })

  test('is not taken away from admins by themselves without a code, whatever they come by and as whom', async () => {
    const { as, stranger, tenant, token: ada, user, signIn } = await createTotpFixture()
    const { _id } = (await as('admin').post('/users', { username: 'grace', roles: ['admin'] })).body
    await as('admin').put(`/users/${user._id}`, { roles: ['admin'] })
    const { token } = await issueApiToken(tenant, user._id, { nickname: 'leaked', scopes: ['accounts:write'] })
    for (const credential of [bearer(ada), { 'x-api-key': token }])
      for (const guise of ['', _id])
        expect(
          statusAndCode(
            await stranger.delete(`/users/${user._id}/totp`, { ...credential, 'x-impersonate-user': guise }),
          ),
        ).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await signIn())).toEqual(FACTOR_REQUIRED)
  })

  test('is nowhere in the database in a form that helps', async () => {
    const { tenant, secret, recovery } = await createTotpFixture()
    const all = []
    for (const table of ['totp', 'recovery_codes', 'sealed', 'jobs', 'mails'])
      all.push(await tenant.db.query(`select * from ${table}`))
    const text = JSON.stringify(all)
    for (const hidden of [secret, recovery[0], recovery[0].replaceAll('-', '')]) expect(text).not.toContain(hidden)
  })
})
