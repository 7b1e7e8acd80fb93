import { afterEach, expect, test } from 'bun:test'
import { listensOn } from '../../src/tenancy/caller'
import { type Answer, ask, house, refusal } from '../house'
import { backToNow, bearer, given, later, MINUTE } from './people'

const home = await house()
const { stranger } = home
const password = 'correct horse'
const email = 'Ada@Lovelace.test'
const { user } = (await stranger.post('/signup', { username: 'Ada', email, password })).body.payload

const decoded = (part = '') => JSON.parse(Buffer.from(part, 'base64url').toString())

afterEach(() => {
  backToNow()
  listensOn(undefined)
})

test('a sign-in tells who it is, nothing secret, and gives a cookie that scripts and other sites cannot use', async () => {
  const answer = await stranger.post('/signin', { username: 'Ada', password })
  expect(answer.status).toBe(200)
  expect(answer.body).toEqual({ payload: { user, workspace: null } })
  expect(JSON.stringify(answer.body)).not.toMatch(/password|argon2|correct horse/)
  const { cookie, attributes } = given(answer)
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
  const answer = await ask('POST', url, { body: { username: 'Ada', password } })
  expect(given(answer).attributes).toContain('Secure')
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
  expect(decoded(head)).toEqual({ alg: 'HS256', typ: 'JWT' })
  expect(decoded(claims)).toMatchObject({ sub: user._id, tid: home.id, sid: expect.any(String), ver: 1 })
  const left = decoded(claims).exp - Date.now() / 1000
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
  expect(refusal(wrong)).toEqual([401, 'INVALID_CREDENTIALS'])
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
  expect(refusal(answer)).toEqual([400, 'INVALID_INPUT'])
})

test('another tenant does not know her', async () => {
  const abroad = await house()
  const answer = await abroad.stranger.post('/signin', { username: 'Ada', password })
  expect(refusal(answer)).toEqual([401, 'INVALID_CREDENTIALS'])
})

/** A house that hears of each caller's address, and how somebody at an address tries to sign in. */
async function watched() {
  listensOn({ requestIP: ({ headers }) => ({ address: headers.get('x-from') ?? '', port: 1, family: 'IPv4' }) })
  const { stranger } = await house()
  await stranger.post('/signup', { username: 'ada', email, password })
  const attempt = (username: string, from: string, guess = 'wrong horse') =>
    stranger.post('/signin', { username, password: guess }, { 'x-from': from })
  return attempt
}

const TEN = [...Array(10).keys()]
const codes = (answers: Answer[]) => answers.map(({ body }) => body.code)

test('an account at which ten guesses failed is left alone for ten minutes, wherever one comes from', async () => {
  const attempt = await watched()
  const guesses = TEN.map((place) => attempt(place % 2 ? 'ADA' : 'ada', `192.0.2.${place}`))
  expect(new Set(codes(await Promise.all(guesses)))).toEqual(new Set(['INVALID_CREDENTIALS']))

  const refused = await attempt('ada', '192.0.2.99', password)
  expect(refusal(refused)).toEqual([429, 'RATE_LIMITED'])
  expect(Number(refused.headers.get('retry-after'))).toBeWithin(500, 601)
  // Whose place was used for one of the guesses is not to blame for the others.
  expect(refusal(await attempt('bob', '192.0.2.1'))).toEqual([401, 'INVALID_CREDENTIALS'])
  const abroad = await house()
  expect((await abroad.stranger.post('/signin', { username: 'ada', password })).status).toBe(401)

  later(10 * MINUTE + 1000)
  expect((await attempt('ada', '192.0.2.99', password)).status).toBe(200)
})

test('guesses at an account count together, whether they name the user or the e-mail address', async () => {
  const attempt = await watched()
  await Promise.all(TEN.map((place) => attempt(place % 2 ? 'ada' : email, `192.0.2.${place}`)))
  expect(refusal(await attempt('ada', '192.0.2.99', password))).toEqual([429, 'RATE_LIMITED'])
})

test('an address from which ten guesses failed is left alone, and a household is one address', async () => {
  const attempt = await watched()
  await Promise.all(TEN.map((place) => attempt(`nobody ${place}`, `2001:db8:0:1::${place}`)))
  expect(refusal(await attempt('ada', '2001:db8:0:1:ffff::1', password))).toEqual([429, 'RATE_LIMITED'])
  expect((await attempt('ada', '2001:db8:0:2::1', password)).status).toBe(200)
})

test('whoever gets it right in the end has a clean slate', async () => {
  const attempt = await watched()
  await Promise.all(TEN.slice(1).map((place) => attempt('ada', `192.0.2.${place}`)))
  expect((await attempt('ada', '192.0.2.1', password)).status).toBe(200)
  expect((await attempt('ada', '192.0.2.1')).status).toBe(401)
  expect((await attempt('ada', '192.0.2.2', password)).status).toBe(200)
})

test('guesses that come all at once are no way around the limit', async () => {
  const attempt = await watched()
  const guesses = [...Array(16).keys()].map((place) => attempt('ada', `192.0.2.${place}`))
  const tried = codes(await Promise.all(guesses)).filter((code) => code === 'INVALID_CREDENTIALS')
  // Two may be under way when the tenth fails.
  expect(tried.length).toBeWithin(10, 13)
})
