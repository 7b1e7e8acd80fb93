import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { databaseStatistics } from '../../src/storage/database-statistics'
import { setServer } from '../../src/tenancy/client-connection'
import { RATE_LIMITED } from '../expectations'
import { databaseUrl } from '../storage/engines'
import { apiClient, callApi, createTestTenant, statusAndCode, type TestResponse } from '../test-tenant'
import { advanceClock, bearer, MINUTE, readSetCookie, resetClock } from './session-fixtures'

const home = await createTestTenant()
const { anonymous } = home
const password = 'correct horse'
const email = 'Ada@Lovelace.test'
const { user } = (await anonymous.post('/signup', { username: 'Ada', email, password })).body.payload

const decodePart = (part = '') => JSON.parse(Buffer.from(part, 'base64url').toString())

afterEach(() => {
  resetClock()
  setServer(undefined)
})

test('POST /api/signin returns the user without secrets and sets an HttpOnly cookie with SameSite=Lax', async () => {
  const answer = await anonymous.post('/signin', { username: 'Ada', password })
  expect(answer.status).toBe(200)
  expect(answer.body).toEqual({ payload: { user, workspace: null } })
  expect(JSON.stringify(answer.body)).not.toMatch(/password|argon2|correct horse/)
  const { cookie, attributes } = readSetCookie(answer)
  expect(cookie).toMatch(new RegExp(`^atoll_${home.id}=[\\w-]{43}$`))
  expect(attributes).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/', 'SameSite=Lax'])
  expect((await anonymous.get('/me', { cookie })).body.username).toBe('Ada')
})

test('a sign-in commits once before and once after the password is verified', async () => {
  const { commits } = databaseStatistics[databaseUrl ? 'postgres' : 'sqlite']
  const counts: number[] = []
  // Other work of this process may commit meanwhile, but not each time.
  for (let n = 0; n < 8; n++) {
    const before = commits.count
    expect((await anonymous.post('/signin', { username: 'Ada', password })).status).toBe(200)
    counts.push(commits.count - before)
  }
  expect(Math.min(...counts)).toBe(2)
})

test('responses with tokens or session cookies have cache-control: no-store', async () => {
  const tokenResponse = await anonymous.post('/signin', { username: 'Ada', password, authType: 'oauth' })
  const { token, refreshToken } = tokenResponse.body.payload
  const answers = [
    tokenResponse,
    await anonymous.post('/signin', { username: 'Ada', password }),
    await anonymous.post('/signup', { username: 'Bob', password, authType: 'oauth' }),
    await anonymous.post('/token/refresh', { refreshToken }),
    await anonymous.post('/me/api-tokens', { nickname: 'mine' }, bearer(token)),
  ]
  expect(answers.map(({ headers }) => headers.get('cache-control'))).toEqual(answers.map(() => 'no-store'))
})

test.each(['/api', '/api/v1'])('POST %s/signin over TLS sets a cookie with the attribute Secure', async (root) => {
  const url = `${home.origin.replace('http:', 'https:')}${root}/signin`
  const answer = await callApi('POST', url, { body: { username: 'Ada', password } })
  expect(readSetCookie(answer).attributes).toContain('Secure')
})

test('POST /api/signin with authType oauth returns a 15-minute access token and a refresh token, and sets no cookie', async () => {
  const answer = await anonymous.post('/signin', { username: 'Ada', password, authType: 'oauth' })
  expect(answer.status).toBe(200)
  const { token, refreshToken } = answer.body.payload
  expect(answer.body).toEqual({ payload: { token, refreshToken, expiresIn: 900, user, workspace: null } })
  expect(refreshToken).toMatch(/^[\w-]{43}$/)
  expect(answer.headers.get('set-cookie')).toBeNull()
  expect((await anonymous.get('/me', bearer(token))).body.username).toBe('Ada')

  const [head, claims] = token.split('.')
  expect(decodePart(head)).toEqual({ alg: 'HS256', typ: 'JWT' })
  expect(decodePart(claims)).toMatchObject({ sub: user._id, tid: home.id, sid: expect.any(String), ver: 1 })
  const remainingSeconds = decodePart(claims).exp - Date.now() / 1000
  expect(remainingSeconds).toBeGreaterThan(800)
  expect(remainingSeconds).toBeLessThanOrEqual(900)
})

test('POST /api/signin accepts the username and the e-mail address in any case and width', async () => {
  const names = ['ADA', 'ＡＤＡ', 'ada@lovelace.test']
  for (const { body } of await Promise.all(names.map((username) => anonymous.post('/signin', { username, password }))))
    expect(body.payload?.user.username).toBe('Ada')
})

test('POST /api/signin responds alike to a wrong password, an unknown user and a user without a password', async () => {
  const wrong = await anonymous.post('/signin', { username: 'Ada', password: 'wrong horse' })
  expect(statusAndCode(wrong)).toEqual([401, 'INVALID_CREDENTIALS'])
  expect(wrong.headers.get('set-cookie')).toBeNull()
  // The last one exists, but has no password.
  for (const username of ['nobody', 'nobody@example.test', 'user'])
    expect((await anonymous.post('/signin', { username, password })).body).toEqual(wrong.body)
})

test('POST /api/signin rejects an empty password with 400 or 401', async () => {
  for (const username of ['Ada', 'user']) {
    const { status } = await anonymous.post('/signin', { username, password: '' })
    expect(status).toBeOneOf([400, 401])
  }
})

test.each([
  ['without a username', { username: undefined }],
  ['without a password', { password: undefined }],
  ['with an unknown authType', { authType: 'basic' }],
  ['with a list as username', { username: ['Ada'] }],
])('POST /api/signin %s gets 400 INVALID_INPUT', async (_, flaw) => {
  const answer = await anonymous.post('/signin', { username: 'Ada', password, ...flaw })
  expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
})

test('a user of one tenant gets 401 INVALID_CREDENTIALS at another', async () => {
  const otherTenant = await createTestTenant()
  const answer = await otherTenant.anonymous.post('/signin', { username: 'Ada', password })
  expect(statusAndCode(answer)).toEqual([401, 'INVALID_CREDENTIALS'])
})

/** Creates a tenant that knows the address of each caller, and a function that tries to sign in from an address. */
async function createAddressFixture() {
  setServer({ requestIP: ({ headers }) => ({ address: headers.get('x-from') ?? '', port: 1, family: 'IPv4' }) })
  const { id, origin, anonymous } = await createTestTenant()
  const signedUp = await anonymous.post('/signup', { username: 'ada', email, password }, { 'x-from': '192.0.2.200' })
  const attempt = (username: string, from: string, guess = 'wrong horse', more: object = {}, cookie = '') =>
    anonymous.post('/signin', { username, password: guess, ...more }, { 'x-from': from, ...(cookie && { cookie }) })
  return { id, origin, anonymous, attempt, device: readDeviceCookie(signedUp) }
}

/** Returns the device cookie of a response, as a browser sends it back. */
const readDeviceCookie = ({ headers }: TestResponse) =>
  headers
    .getSetCookie()
    .find((cookie) => cookie.includes('_device='))
    ?.split(';')[0]

const TEN_ATTEMPTS = [...Array(10).keys()]
const toCodes = (answers: TestResponse[]) => answers.map(({ body }) => body.code)

test('ten wrong passwords for an account from one address limit both together with 429 RATE_LIMITED for ten minutes', async () => {
  const { attempt } = await createAddressFixture()
  const guesses = TEN_ATTEMPTS.map((n) => attempt(n % 2 ? 'ADA' : 'ada', '192.0.2.1'))
  expect(new Set(toCodes(await Promise.all(guesses)))).toEqual(new Set(['INVALID_CREDENTIALS']))

  const refused = await attempt('ada', '192.0.2.1', password)
  expect(statusAndCode(refused)).toEqual(RATE_LIMITED)
  expect(Number(refused.headers.get('retry-after'))).toBeWithin(500, 601)
  expect(statusAndCode(await attempt('bob', '192.0.2.1'))).toEqual([401, 'INVALID_CREDENTIALS'])
  expect((await attempt('ada', '192.0.2.2', password)).status).toBe(200)
  const otherTenant = await createTestTenant()
  expect(
    statusAndCode(
      await otherTenant.anonymous.post('/signin', { username: 'ada', password }, { 'x-from': '192.0.2.1' }),
    ),
  ).toEqual([401, 'INVALID_CREDENTIALS'])

  advanceClock(10 * MINUTE + 1000)
  expect((await attempt('ada', '192.0.2.1', password)).status).toBe(200)
})

test('wrong passwords by username and by e-mail address count for the same account', async () => {
  const { attempt } = await createAddressFixture()
  await Promise.all(TEN_ATTEMPTS.map((n) => attempt(n % 2 ? 'ada' : email, '192.0.2.1')))
  expect(statusAndCode(await attempt('ada', '192.0.2.1', password))).toEqual(RATE_LIMITED)
})

test('an account that was rate-limited while the clock was ahead by a year can sign in when it is set right', async () => {
  advanceClock(365 * 24 * 60 * MINUTE)
  const wrong = () => anonymous.post('/signin', { username: 'Ada', password: 'wrong' })
  while ((await wrong()).status !== 429);
  resetClock()
  expect((await anonymous.post('/signin', { username: 'Ada', password })).status).toBe(200)
})

test('a hundred wrong passwords from one IPv6 /64 network make it get 429 RATE_LIMITED', async () => {
  const { attempt } = await createAddressFixture()
  // Verifying passwords is slow and irrelevant here.
  const verify = spyOn(Bun.password, 'verify').mockImplementation(async () => false)
  for (let n = 0; n < 99; n++) await attempt(`nobody ${n}`, `2001:db8:0:1::${n}`)
  verify.mockRestore()
  expect((await attempt('ada', '2001:db8:0:1:ffff::1', password)).status).toBe(200)
  expect(statusAndCode(await attempt('ada', '2001:db8:0:1:ffff::1'))).toEqual([401, 'INVALID_CREDENTIALS'])
  expect(statusAndCode(await attempt('ada', '2001:db8:0:1:ffff::1', password))).toEqual(RATE_LIMITED)
  expect((await attempt('ada', '2001:db8:0:2::1', password)).status).toBe(200)
})

test('a successful sign-in resets the count of wrong passwords', async () => {
  const { attempt } = await createAddressFixture()
  await Promise.all(TEN_ATTEMPTS.slice(1).map(() => attempt('ada', '192.0.2.1')))
  expect((await attempt('ada', '192.0.2.1', password)).status).toBe(200)
  await Promise.all(TEN_ATTEMPTS.slice(1).map(() => attempt('ada', '192.0.2.1')))
  expect((await attempt('ada', '192.0.2.1', password)).status).toBe(200)
})

test('sixteen simultaneous wrong passwords for one account are verified at most twelve times', async () => {
  const { attempt } = await createAddressFixture()
  const guesses = [...Array(16).keys()].map(() => attempt('ada', '192.0.2.1'))
  const verified = toCodes(await Promise.all(guesses)).filter((code) => code === 'INVALID_CREDENTIALS')
  // Two more may be running when the tenth fails.
  expect(verified.length).toBeWithin(10, 13)
})

describe('a known device', () => {
  test('a sign-in sets a long-lived HttpOnly device cookie besides the session cookie, but not with authType oauth', async () => {
    const { id, attempt } = await createAddressFixture()
    const cookies = (await attempt('ada', '192.0.2.1', password)).headers.getSetCookie()
    expect(cookies).toHaveLength(2)
    const [pair, ...attributes] = cookies[1]!.split('; ')
    expect(pair).toMatch(new RegExp(`^atoll_${id}_device=[\\w-]{43}\\.[\\w-]{43}$`))
    expect(attributes.sort()).toEqual(['HttpOnly', 'Max-Age=34560000', 'Path=/', 'SameSite=Lax'])
    const tokens = await attempt('ada', '192.0.2.1', password, { authType: 'oauth' })
    expect(tokens.headers.getSetCookie()).toEqual([])
  })

  test('a known device can sign in although its address is rate-limited for the account', async () => {
    const { attempt, device } = await createAddressFixture()
    for (let n = 0; n < 11; n++) await attempt('ada', '192.0.2.1')
    expect(statusAndCode(await attempt('ada', '192.0.2.1', password))).toEqual(RATE_LIMITED)
    expect((await attempt('ada', '192.0.2.1', password, {}, device)).status).toBe(200)
    // Other devices at the address stay rate-limited.
    expect(statusAndCode(await attempt('ada', '192.0.2.1', password))).toEqual(RATE_LIMITED)
  })

  test('ten wrong passwords from a known device rate-limit that device only', async () => {
    const { attempt, device } = await createAddressFixture()
    for (const n of TEN_ATTEMPTS)
      expect((await attempt('ada', `192.0.2.${n}`, 'wrong horse', {}, device)).status).toBe(401)
    expect(statusAndCode(await attempt('ada', '192.0.2.99', password, {}, device))).toEqual(RATE_LIMITED)
    expect((await attempt('ada', '192.0.2.1', password)).status).toBe(200)
  })

  test('a device cookie counts only for the accounts that have signed in with it', async () => {
    const { anonymous, attempt, device } = await createAddressFixture()
    const eve = { username: 'eve', password }
    const both = readDeviceCookie(await anonymous.post('/signup', eve, { 'x-from': '192.0.2.1', cookie: device! }))!
    expect(both.split('.')[0]).toBe(device!.split('.')[0]!)
    for (const name of ['ada', 'eve']) {
      for (let n = 0; n < 11; n++) await attempt(name, '192.0.2.1')
      expect((await attempt(name, '192.0.2.1', password, {}, both)).status).toBe(200)
    }
    expect(statusAndCode(await attempt('eve', '192.0.2.1', password, {}, device))).toEqual(RATE_LIMITED)
  })

  test('a forged, foreign, shortened or duplicate device cookie does not count', async () => {
    const { id, attempt, device } = await createAddressFixture()
    for (let n = 0; n < 11; n++) await attempt('ada', '192.0.2.1')
    const otherTenant = await createAddressFixture()
    const value = device!.split('=')[1]!
    const forged = [
      `atoll_${id}_device=${otherTenant.device!.split('=')[1]}`,
      `atoll_${id}_device=${value.replace(/^./, (sign) => (sign === 'A' ? 'B' : 'A'))}`,
      `atoll_${id}_device=${value.split('.')[0]}`,
      `${device}; ${device}`,
    ]
    for (const cookie of forged)
      expect(statusAndCode(await attempt('ada', '192.0.2.1', password, {}, cookie))).toEqual(RATE_LIMITED)
    expect((await attempt('ada', '192.0.2.1', password, {}, device)).status).toBe(200)
  })

  test('the device cookie over TLS has the prefix __Host- and is not displaced by a cookie without the prefix', async () => {
    const { id, origin, attempt } = await createAddressFixture()
    const tlsClient = apiClient(origin.replace('http:', 'https:'))
    const signIn = (from: string, cookie = '') =>
      tlsClient.post('/signin', { username: 'ada', password }, { 'x-from': from, ...(cookie && { cookie }) })
    const [pair, ...attributes] = (await signIn('192.0.2.2')).headers.getSetCookie()[1]!.split('; ')
    expect(pair).toMatch(new RegExp(`^__Host-atoll_${id}_device=[\\w-]{43}\\.[\\w-]{43}$`))
    expect(attributes.sort()).toEqual(['HttpOnly', 'Max-Age=34560000', 'Path=/', 'SameSite=Lax', 'Secure'])
    for (let n = 0; n < 11; n++) await attempt('ada', '192.0.2.1')
    const planted = `atoll_${id}_device=${pair!.split('=')[1]}`
    expect((await signIn('192.0.2.1', `${planted}; ${pair}`)).status).toBe(200)
    expect(statusAndCode(await signIn('192.0.2.1', planted))).toEqual(RATE_LIMITED)
  })

  test('a client without cookies is recognized by its latest refresh token', async () => {
    const { anonymous, attempt } = await createAddressFixture()
    const { payload } = (await attempt('ada', '192.0.2.7', password, { authType: 'oauth' })).body
    const { refreshToken } = (await anonymous.post('/token/refresh', { refreshToken: payload.refreshToken })).body
      .payload
    for (let n = 0; n < 11; n++) await attempt('ada', '192.0.2.1')
    const bob = await anonymous.post(
      '/signup',
      { username: 'bob', password, authType: 'oauth' },
      { 'x-from': '192.0.2.7' },
    )
    const signIn = (token: string) => attempt('ada', '192.0.2.1', password, { refreshToken: token })
    expect(statusAndCode(await signIn(bob.body.payload.refreshToken))).toEqual(RATE_LIMITED)
    expect(statusAndCode(await signIn('nonsense'))).toEqual(RATE_LIMITED)
    expect((await signIn(refreshToken)).status).toBe(200)
  })
})
