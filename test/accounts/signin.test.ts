import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { setServer } from '../../src/tenancy/client-connection'
import { apiClient, callApi, createTestTenant, statusAndCode, type TestResponse } from '../test-tenant'
import { advanceClock, bearer, MINUTE, readSetCookie, resetClock } from './session-fixtures'

const home = await createTestTenant()
const { stranger } = home
const password = 'correct horse'
const email = 'Ada@Lovelace.test'
const { user } = (await stranger.post('/signup', { username: 'Ada', email, password })).body.payload

const decodePart = (part = '') => JSON.parse(Buffer.from(part, 'base64url').toString())

afterEach(() => {
  resetClock()
  setServer(undefined)
})

test('a sign-in tells who it is, nothing secret, and gives a cookie that scripts and other sites cannot use', async () => {
  const answer = await stranger.post('/signin', { username: 'Ada', password })
  expect(answer.status).toBe(200)
  expect(answer.body).toEqual({ payload: { user, workspace: null } })
  expect(JSON.stringify(answer.body)).not.toMatch(/password|argon2|correct horse/)
  const { cookie, attributes } = readSetCookie(answer)
  expect(cookie).toMatch(new RegExp(`^atoll_${home.id}=[\\w-]{43}$`))
  expect(attributes).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/', 'SameSite=Lax'])
  expect((await stranger.get('/me', { cookie })).body.username).toBe('Ada')
})

test('an answer with a secret in it tells everybody on its way not to keep it', async () => {
  const given = await stranger.post('/signin', { username: 'Ada', password, authType: 'oauth' })
  const { token, refreshToken } = given.body.payload
  const answers = [
    given,
    await stranger.post('/signin', { username: 'Ada', password }),
    await stranger.post('/signup', { username: 'Bob', password, authType: 'oauth' }),
    await stranger.post('/token/refresh', { refreshToken }),
    await stranger.post('/me/api-tokens', { nickname: 'mine' }, bearer(token)),
  ]
  expect(answers.map(({ headers }) => headers.get('cache-control'))).toEqual(answers.map(() => 'no-store'))
})

test.each(['/api', '/api/v1'])('a cookie that is given by TLS travels by TLS only: %s', async (root) => {
  const url = `${home.origin.replace('http:', 'https:')}${root}/signin`
  const answer = await callApi('POST', url, { body: { username: 'Ada', password } })
  expect(readSetCookie(answer).attributes).toContain('Secure')
})

test('whoever asks for tokens gets a short access token and a refresh token, and no cookie', async () => {
  const answer = await stranger.post('/signin', { username: 'Ada', password, authType: 'oauth' })
  expect(answer.status).toBe(200)
  const { token, refreshToken } = answer.body.payload
  expect(answer.body).toEqual({ payload: { token, refreshToken, expiresIn: 900, user, workspace: null } })
  expect(refreshToken).toMatch(/^[\w-]{43}$/)
  expect(answer.headers.get('set-cookie')).toBeNull()
  expect((await stranger.get('/me', bearer(token))).body.username).toBe('Ada')

  const [head, claims] = token.split('.')
  expect(decodePart(head)).toEqual({ alg: 'HS256', typ: 'JWT' })
  expect(decodePart(claims)).toMatchObject({ sub: user._id, tid: home.id, sid: expect.any(String), ver: 1 })
  const left = decodePart(claims).exp - Date.now() / 1000
  expect(left).toBeGreaterThan(800)
  expect(left).toBeLessThanOrEqual(900)
})

test('a name and an address sign in however they are written', async () => {
  const names = ['ADA', 'ＡＤＡ', 'ada@lovelace.test']
  for (const { body } of await Promise.all(names.map((username) => stranger.post('/signin', { username, password }))))
    expect(body.payload?.user.username).toBe('Ada')
})

test('a refusal does not tell what was wrong', async () => {
  const wrong = await stranger.post('/signin', { username: 'Ada', password: 'wrong horse' })
  expect(statusAndCode(wrong)).toEqual([401, 'INVALID_CREDENTIALS'])
  expect(wrong.headers.get('set-cookie')).toBeNull()
  // The last one exists, but has no password.
  for (const username of ['nobody', 'nobody@example.test', 'user'])
    expect((await stranger.post('/signin', { username, password })).body).toEqual(wrong.body)
})

test('an empty password opens no door', async () => {
  for (const username of ['Ada', 'user']) {
    const { status } = await stranger.post('/signin', { username, password: '' })
    expect(status).toBeOneOf([400, 401])
  }
})

test.each([
  ['without a name', { username: undefined }],
  ['without a password', { password: undefined }],
  ['of an unknown kind', { authType: 'basic' }],
  ['whose name is a list', { username: ['Ada'] }],
])('a sign-in %s is refused', async (_, flaw) => {
  const answer = await stranger.post('/signin', { username: 'Ada', password, ...flaw })
  expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
})

test('another tenant does not know her', async () => {
  const abroad = await createTestTenant()
  const answer = await abroad.stranger.post('/signin', { username: 'Ada', password })
  expect(statusAndCode(answer)).toEqual([401, 'INVALID_CREDENTIALS'])
})

/** A tenant that hears of each caller's address, and how somebody at an address tries to sign in. */
async function createAddressFixture() {
  setServer({ requestIP: ({ headers }) => ({ address: headers.get('x-from') ?? '', port: 1, family: 'IPv4' }) })
  const { id, origin, stranger } = await createTestTenant()
  const signedUp = await stranger.post('/signup', { username: 'ada', email, password }, { 'x-from': '192.0.2.200' })
  const attempt = (username: string, from: string, guess = 'wrong horse', more: object = {}, cookie = '') =>
    stranger.post('/signin', { username, password: guess, ...more }, { 'x-from': from, ...(cookie && { cookie }) })
  return { id, origin, stranger, attempt, device: readDeviceCookie(signedUp) }
}

/** The device cookie that an answer gives, as a browser would send it back. */
const readDeviceCookie = ({ headers }: TestResponse) =>
  headers
    .getSetCookie()
    .find((cookie) => cookie.includes('_device='))
    ?.split(';')[0]

const TEN_ATTEMPTS = [...Array(10).keys()]
const toCodes = (answers: TestResponse[]) => answers.map(({ body }) => body.code)
const RATE_LIMITED = [429, 'RATE_LIMITED']

test('refuses an account and an address together after ten wrong guesses, for ten minutes', async () => {
  const { attempt } = await createAddressFixture()
  const guesses = TEN_ATTEMPTS.map((n) => attempt(n % 2 ? 'ADA' : 'ada', '192.0.2.1'))
  expect(new Set(toCodes(await Promise.all(guesses)))).toEqual(new Set(['INVALID_CREDENTIALS']))

  const refused = await attempt('ada', '192.0.2.1', password)
  expect(statusAndCode(refused)).toEqual(RATE_LIMITED)
  expect(Number(refused.headers.get('retry-after'))).toBeWithin(500, 601)
  expect(statusAndCode(await attempt('bob', '192.0.2.1'))).toEqual([401, 'INVALID_CREDENTIALS'])
  expect((await attempt('ada', '192.0.2.2', password)).status).toBe(200)
  const abroad = await createTestTenant()
  expect(
    statusAndCode(await abroad.stranger.post('/signin', { username: 'ada', password }, { 'x-from': '192.0.2.1' })),
  ).toEqual([401, 'INVALID_CREDENTIALS'])

  advanceClock(10 * MINUTE + 1000)
  expect((await attempt('ada', '192.0.2.1', password)).status).toBe(200)
})

test('counts guesses that name the user and those that name the e-mail address as one', async () => {
  const { attempt } = await createAddressFixture()
  await Promise.all(TEN_ATTEMPTS.map((n) => attempt(n % 2 ? 'ada' : email, '192.0.2.1')))
  expect(statusAndCode(await attempt('ada', '192.0.2.1', password))).toEqual(RATE_LIMITED)
})

test('refuses an address after a hundred wrong guesses, and takes a household as one address', async () => {
  const { attempt } = await createAddressFixture()
  // The passwords need not be tried for that.
  const verify = spyOn(Bun.password, 'verify').mockImplementation(async () => false)
  for (let n = 0; n < 99; n++) await attempt(`nobody ${n}`, `2001:db8:0:1::${n}`)
  verify.mockRestore()
  expect((await attempt('ada', '2001:db8:0:1:ffff::1', password)).status).toBe(200)
  expect(statusAndCode(await attempt('ada', '2001:db8:0:1:ffff::1'))).toEqual([401, 'INVALID_CREDENTIALS'])
  expect(statusAndCode(await attempt('ada', '2001:db8:0:1:ffff::1', password))).toEqual(RATE_LIMITED)
  expect((await attempt('ada', '2001:db8:0:2::1', password)).status).toBe(200)
})

test('clears the slate of who gets it right in the end', async () => {
  const { attempt } = await createAddressFixture()
  await Promise.all(TEN_ATTEMPTS.slice(1).map(() => attempt('ada', '192.0.2.1')))
  expect((await attempt('ada', '192.0.2.1', password)).status).toBe(200)
  await Promise.all(TEN_ATTEMPTS.slice(1).map(() => attempt('ada', '192.0.2.1')))
  expect((await attempt('ada', '192.0.2.1', password)).status).toBe(200)
})

test('lets no guesses through beyond the limit when they come all at once', async () => {
  const { attempt } = await createAddressFixture()
  const guesses = [...Array(16).keys()].map(() => attempt('ada', '192.0.2.1'))
  const tried = toCodes(await Promise.all(guesses)).filter((code) => code === 'INVALID_CREDENTIALS')
  // Two may be under way when the tenth fails.
  expect(tried.length).toBeWithin(10, 13)
})

describe('a device that has signed in to the account before', () => {
  test('gets a long-lived cookie that scripts cannot read, beside that of the session', async () => {
    const { id, attempt } = await createAddressFixture()
    const cookies = (await attempt('ada', '192.0.2.1', password)).headers.getSetCookie()
    expect(cookies).toHaveLength(2)
    const [pair, ...attributes] = cookies[1]!.split('; ')
    expect(pair).toMatch(new RegExp(`^atoll_${id}_device=[\\w-]{43}\\.[\\w-]{43}$`))
    expect(attributes.sort()).toEqual(['HttpOnly', 'Max-Age=34560000', 'Path=/', 'SameSite=Lax'])
    const tokens = await attempt('ada', '192.0.2.1', password, { authType: 'oauth' })
    expect(tokens.headers.getSetCookie()).toEqual([])
  })

  test('signs in although others at its address have guessed too often', async () => {
    const { attempt, device } = await createAddressFixture()
    for (let n = 0; n < 11; n++) await attempt('ada', '192.0.2.1')
    expect(statusAndCode(await attempt('ada', '192.0.2.1', password))).toEqual(RATE_LIMITED)
    expect((await attempt('ada', '192.0.2.1', password, {}, device)).status).toBe(200)
    // That others guess goes on counting against them.
    expect(statusAndCode(await attempt('ada', '192.0.2.1', password))).toEqual(RATE_LIMITED)
  })

  test('is refused after ten wrong guesses of its own, and nobody else is', async () => {
    const { attempt, device } = await createAddressFixture()
    for (const n of TEN_ATTEMPTS)
      expect((await attempt('ada', `192.0.2.${n}`, 'wrong horse', {}, device)).status).toBe(401)
    expect(statusAndCode(await attempt('ada', '192.0.2.99', password, {}, device))).toEqual(RATE_LIMITED)
    expect((await attempt('ada', '192.0.2.1', password)).status).toBe(200)
  })

  test('is known for its own accounts only, also where several people use it', async () => {
    const { stranger, attempt, device } = await createAddressFixture()
    const eve = { username: 'eve', password }
    const both = readDeviceCookie(await stranger.post('/signup', eve, { 'x-from': '192.0.2.1', cookie: device! }))!
    expect(both.split('.')[0]).toBe(device!.split('.')[0]!)
    for (const name of ['ada', 'eve']) {
      for (let n = 0; n < 11; n++) await attempt(name, '192.0.2.1')
      expect((await attempt(name, '192.0.2.1', password, {}, both)).status).toBe(200)
    }
    expect(statusAndCode(await attempt('eve', '192.0.2.1', password, {}, device))).toEqual(RATE_LIMITED)
  })

  test('is not one that shows a forged or foreign cookie, or two', async () => {
    const { id, attempt, device } = await createAddressFixture()
    for (let n = 0; n < 11; n++) await attempt('ada', '192.0.2.1')
    const abroad = await createAddressFixture()
    const value = device!.split('=')[1]!
    const forged = [
      `atoll_${id}_device=${abroad.device!.split('=')[1]}`,
      `atoll_${id}_device=${value.replace(/^./, (sign) => (sign === 'A' ? 'B' : 'A'))}`,
      `atoll_${id}_device=${value.split('.')[0]}`,
      `${device}; ${device}`,
    ]
    for (const cookie of forged)
      expect(statusAndCode(await attempt('ada', '192.0.2.1', password, {}, cookie))).toEqual(RATE_LIMITED)
    expect((await attempt('ada', '192.0.2.1', password, {}, device)).status).toBe(200)
  })

  test('has a cookie with the prefix __Host- by TLS, which no cookie of a neighbour at the parent domain takes away', async () => {
    const { id, origin, attempt } = await createAddressFixture()
    const safe = apiClient(origin.replace('http:', 'https:'))
    const signIn = (from: string, cookie = '') =>
      safe.post('/signin', { username: 'ada', password }, { 'x-from': from, ...(cookie && { cookie }) })
    const [pair, ...attributes] = (await signIn('192.0.2.2')).headers.getSetCookie()[1]!.split('; ')
    expect(pair).toMatch(new RegExp(`^__Host-atoll_${id}_device=[\\w-]{43}\\.[\\w-]{43}$`))
    expect(attributes.sort()).toEqual(['HttpOnly', 'Max-Age=34560000', 'Path=/', 'SameSite=Lax', 'Secure'])
    for (let n = 0; n < 11; n++) await attempt('ada', '192.0.2.1')
    const tossed = `atoll_${id}_device=${pair!.split('=')[1]}`
    expect((await signIn('192.0.2.1', `${tossed}; ${pair}`)).status).toBe(200)
    expect(statusAndCode(await signIn('192.0.2.1', tossed))).toEqual(RATE_LIMITED)
  })

  test('is known by its last refresh token where it has no cookies', async () => {
    const { stranger, attempt } = await createAddressFixture()
    const { payload } = (await attempt('ada', '192.0.2.7', password, { authType: 'oauth' })).body
    const { refreshToken } = (await stranger.post('/token/refresh', { refreshToken: payload.refreshToken })).body
      .payload
    for (let n = 0; n < 11; n++) await attempt('ada', '192.0.2.1')
    const bob = await stranger.post(
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
