import { afterEach, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { setRoles } from '../../src/accounts/users/users'
import { deriveKey } from '../../src/tenancy/installation-keys'
import { callApi, createTestTenant, statusAndCode } from '../test-tenant'
import {
  advanceClock,
  bearer,
  clearsSessionCookie,
  MINUTE,
  resetClock,
  SECOND,
  signInForCookie,
  signInForTokens,
} from './session-fixtures'

const home = await createTestTenant()
const otherTenant = await createTestTenant()
const { stranger } = home
const sampleTokens = await signInForTokens(home, 'user')

const toApiKeyHeader = (token: string) => ({ 'x-api-key': token })
const getUsername = async (headers: Record<string, string>) => (await stranger.get('/me', headers)).body.username
const UNAUTHENTICATED = [401, 'UNAUTHENTICATED']
const FORBIDDEN = [403, 'FORBIDDEN']

afterEach(resetClock)

describe('credentials', () => {
  test('an API token comes before a bearer token, and that before a cookie', async () => {
    const cookie = await signInForCookie(home, 'other')
    const token = bearer((await signInForTokens(home, 'user')).token)
    expect(await getUsername({ ...cookie, ...token, ...toApiKeyHeader(home.tokens.admin) })).toBe('admin')
    expect(await getUsername({ ...cookie, ...token })).toBe('user')
    expect(await getUsername(cookie)).toBe('other')
    expect(await getUsername({ Authorization: token.authorization.replace('Bearer', 'bearer') })).toBe('user')
  })

  test('one that is no good is refused, whatever good ones come with it', async () => {
    const cookie = await signInForCookie(home, 'user')
    const token = bearer((await signInForTokens(home, 'user')).token)
    const answers = [
      await stranger.get('/me', { ...cookie, ...token, ...toApiKeyHeader(`atl_${'0'.repeat(64)}`) }),
      await stranger.get('/me', { ...cookie, ...token, ...toApiKeyHeader('x') }),
      await stranger.get('/me', { ...cookie, ...bearer('x.y.z') }),
      await stranger.get('/me', { ...cookie, authorization: 'Bearer' }),
      await stranger.get('/me', { ...cookie, authorization: 'Basic dXNlcjp1c2Vy' }),
    ]
    for (const answer of answers) expect(statusAndCode(answer)).toEqual(UNAUTHENTICATED)
  })

  test('one that is no good does not make a guest of its bearer', async () => {
    const path = '/blueprints/nothing/entities'
    expect((await stranger.get(path)).status).not.toBe(401)
    const dead = { cookie: `atoll_${home.id}=${'x'.repeat(43)}` }
    for (const bad of [toApiKeyHeader('x'), bearer('x'), dead])
      expect(statusAndCode(await stranger.get(path, bad))).toEqual(UNAUTHENTICATED)
  })

  test('a dead cookie is cleared by the answer that refuses it', async () => {
    const dead = { cookie: `atoll_${home.id}=${'x'.repeat(43)}` }
    for (const answer of [
      await stranger.get('/me', dead),
      await stranger.post('/me', { name: 'x' }, dead),
      await stranger.get('/blueprints/nothing/entities', dead),
      await stranger.post('/logout', undefined, dead),
    ]) {
      expect(statusAndCode(answer)).toEqual(UNAUTHENTICATED)
      expect(clearsSessionCookie(answer, home)).toBe(true)
    }
  })

  test('a good cookie is not touched by a refusal', async () => {
    const answer = await stranger.get('/me', { ...(await signInForCookie(home, 'user')), ...bearer('x') })
    expect(answer.status).toBe(401)
    expect(answer.headers.get('set-cookie')).toBeNull()
  })

  test('open routes do not look at credentials', async () => {
    const bad = { ...toApiKeyHeader('x'), cookie: `atoll_${home.id}=x` }
    const { refreshToken } = await signInForTokens(home, 'user')
    expect((await stranger.post('/token/refresh', { refreshToken }, bad)).status).toBe(200)
    for (const path of ['/signin', '/signup'])
      for (const headers of [bad, bearer('x')])
        expect(statusAndCode(await stranger.post(path, {}, headers))).toEqual([400, 'INVALID_INPUT'])
    expect((await callApi('GET', `${home.origin}/health`, { headers: bad })).status).toBe(200)
  })

  test('of another kind is told where it belongs', async () => {
    const { token } = await signInForTokens(home, 'user')
    const told = async (headers: Record<string, string>, at = stranger) => {
      const answer = await at.get('/me', headers)
      expect(statusAndCode(answer)).toEqual(UNAUTHENTICATED)
      return answer.body.message as string
    }
    expect(await told(bearer(home.tokens.user))).toBe('This is an API token. Send it in the header x-api-key.')
    expect(await told(bearer(`atl_${'0'.repeat(64)}`))).toContain('x-api-key')
    expect(await told(toApiKeyHeader(token))).toContain('Authorization: Bearer')
    for (const authorization of ['Basic YWRhOnNlY3JldA==', 'Bearer', 'Digest x'])
      expect(await told({ authorization })).toStartWith('Only Bearer tokens')
    expect(await told(bearer(token), (await createTestTenant()).stranger)).toStartWith(
      'This token belongs to another tenant.',
    )
    for (const broken of ['x', 'a.b.c', `${token}x`, 'a.e30.c', 'a.bnVsbA.c', `x.${btoa('{"tid":5}')}`.slice(0, 3)])
      expect(await told(bearer(broken)), broken).toStartWith('The token is invalid or has expired.')
  })

  test('each is good in its own place only', async () => {
    const { token, refreshToken } = await signInForTokens(home, 'user')
    const value = (await signInForCookie(home, 'user')).cookie.split('=')[1] ?? ''
    const cookie = (text: string) => ({ cookie: `atoll_${home.id}=${text}` })
    const swapped = [
      bearer(home.tokens.user),
      bearer(refreshToken),
      bearer(value),
      toApiKeyHeader(token),
      toApiKeyHeader(refreshToken),
      toApiKeyHeader(value),
      cookie(token),
      cookie(refreshToken),
      cookie(home.tokens.user),
    ]
    for (const headers of swapped) expect(statusAndCode(await stranger.get('/me', headers))).toEqual(UNAUTHENTICATED)
  })

  test('whoever knows the database by heart comes no further', async () => {
    const { cookie } = await signInForCookie(home, 'user')
    const hash = new Bun.CryptoHasher('sha256').update(cookie.split('=')[1] ?? '').digest('hex')
    expect(statusAndCode(await stranger.get('/me', { cookie: `atoll_${home.id}=${hash}` }))).toEqual(UNAUTHENTICATED)
  })
})

describe('what a caller may do', () => {
  test('is decided by roles: a stranger is asked to sign in, a user is told no', async () => {
    expect(statusAndCode(await stranger.post('/blueprints', {}))).toEqual(UNAUTHENTICATED)
    expect(statusAndCode(await home.as('user').post('/blueprints', {}))).toEqual(FORBIDDEN)
    // Whose roles suffice gets as far as to what is missing.
    for (const name of ['editor', 'admin'] as const)
      expect(statusAndCode(await home.as(name).post('/blueprints', {}))).toEqual([400, 'INVALID_INPUT'])
  })

  test('follows a change of roles at once, by every credential', async () => {
    const callers = [
      toApiKeyHeader(home.tokens.other),
      bearer((await signInForTokens(home, 'other')).token),
      await signInForCookie(home, 'other'),
    ]
    const refusals = async () => {
      const answers = []
      for (const headers of callers) answers.push(await stranger.post('/blueprints', {}, headers))
      return answers.map(({ status }) => status)
    }
    expect(await refusals()).toEqual([403, 403, 403])
    await setRoles(home.tenant, 'other', ['plugin'])
    expect(await refusals()).toEqual([400, 400, 400])
    await setRoles(home.tenant, 'other', ['user'])
    expect(await refusals()).toEqual([403, 403, 403])
  })
})

describe('a page of another site', () => {
  const write = (headers: Record<string, string>) => stranger.post('/me', { metadata: { colour: 'red' } }, headers)
  const host = `${home.id}.test`

  test.each([
    ['origin', 'https://evil.example'],
    ['origin', 'null'],
    ['origin', `http://${host}.evil.example`],
    ['origin', `http://evil-${host}`],
    ['origin', `http://${host}:8080`],
    ['origin', `http://${host}@evil.example`],
    ['origin', 'nonsense'],
    ['origin', `http://${otherTenant.id}.test`],
    ['sec-fetch-site', 'cross-site'],
  ])('writes nothing with the cookie of its visitor: %s %s', async (name, value) => {
    const cookie = await signInForCookie(home, 'user')
    const answer = await write({ ...cookie, [name]: value })
    expect(statusAndCode(answer)).toEqual([403, 'CROSS_SITE'])
    expect(answer.headers.get('set-cookie')).toBeNull()
    expect((await stranger.get('/me', cookie)).body.metadata).toEqual({})
    expect(statusAndCode(await stranger.post('/logout', undefined, { ...cookie, [name]: value }))).toEqual([
      403,
      'CROSS_SITE',
    ])
    expect(statusAndCode(await stranger.delete('/me/sessions/x', { ...cookie, [name]: value }))).toEqual([
      403,
      'CROSS_SITE',
    ])
    expect((await stranger.get('/me', { ...cookie, [name]: value })).status).toBe(200)
  })

  test('is turned away before its text is read', async () => {
    const headers = {
      ...(await signInForCookie(home, 'user')),
      origin: 'https://evil.example',
      'content-type': 'text/plain',
    }
    expect(statusAndCode(await callApi('POST', `${home.origin}/api/me`, { headers, raw: '{"broken' }))).toEqual([
      403,
      'CROSS_SITE',
    ])
  })

  test('is told from a page of ours, from a program, and from who brings a credential on purpose', async () => {
    const cookie = await signInForCookie(home, 'editor')
    const foreign = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
    const { token } = await signInForTokens(home, 'editor')
    for (const headers of [
      { ...cookie, origin: home.origin, 'sec-fetch-site': 'same-origin' },
      { ...cookie, origin: home.origin.toUpperCase() },
      { ...cookie, 'sec-fetch-site': 'none' },
      cookie,
      { ...bearer(token), ...foreign },
      { ...toApiKeyHeader(home.tokens.editor), ...foreign },
      { ...cookie, ...toApiKeyHeader(home.tokens.editor), ...foreign },
    ])
      expect((await write(headers)).status).toBe(200)
  })
})

describe('another tenant', () => {
  const paths = ['/me', '/me/sessions', '/blueprints', '/blueprints/nothing/entities']

  test('knows nothing of an API token, an access token or a refresh token', async () => {
    const { token, refreshToken } = await signInForTokens(home, 'admin')
    for (const headers of [toApiKeyHeader(home.tokens.admin), bearer(token), bearer(refreshToken)])
      for (const path of paths)
        expect(statusAndCode(await otherTenant.stranger.get(path, headers))).toEqual(UNAUTHENTICATED)
    expect(statusAndCode(await otherTenant.stranger.post('/token/refresh', { refreshToken }))).toEqual(UNAUTHENTICATED)
    expect((await stranger.get('/me', bearer(token))).status).toBe(200)
  })

  test('does not take a cookie for its own, not even under its own name', async () => {
    const { cookie } = await signInForCookie(home, 'admin')
    expect(statusAndCode(await otherTenant.stranger.get('/me', { cookie }))).toEqual(UNAUTHENTICATED)
    const renamed = { cookie: cookie.replace(home.id, otherTenant.id) }
    for (const path of paths)
      expect(statusAndCode(await otherTenant.stranger.get(path, renamed))).toEqual(UNAUTHENTICATED)
    expect((await stranger.get('/me', { cookie })).status).toBe(200)
  })

  test('is not reached with a header either', async () => {
    const there = { tenant: otherTenant.id }
    const { token } = await signInForTokens(home, 'admin')
    const { cookie } = await signInForCookie(home, 'admin')
    const renamed = cookie.replace(home.id, otherTenant.id)
    for (const path of paths.slice(0, 3)) {
      for (const headers of [toApiKeyHeader(home.tokens.admin), bearer(token), { cookie }])
        expect(statusAndCode(await stranger.get(path, { ...headers, ...there }))).toEqual(UNAUTHENTICATED)
      const answer = await stranger.get(path, { cookie: renamed, ...there })
      expect(statusAndCode(answer)).toEqual([403, 'COOKIE_OF_ANOTHER_HOST'])
    }
    // The header works: those who belong there get in.
    expect(await getUsername({ ...toApiKeyHeader(otherTenant.tokens.user), ...there })).toBe('user')
  })

  test('and this one can be visited by the same browser, each with its own cookie', async () => {
    const [here, there] = [
      (await signInForCookie(home, 'user')).cookie,
      (await signInForCookie(otherTenant, 'other')).cookie,
    ]
    const cookie = `theme=dark; ${there}; ${here}`
    expect((await home.stranger.get('/me', { cookie })).body.username).toBe('user')
    expect((await otherTenant.stranger.get('/me', { cookie })).body.username).toBe('other')
  })
})

const right = await deriveKey(home.id, 'access-token')
const foreign = await deriveKey(otherTenant.id, 'access-token')

describe('an access token', () => {
  type Claims = Record<string, unknown>
  const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = (claims: Claims, secret: Uint8Array | string, head: Claims = {}, hash = 'sha256') => {
    const text = `${encoded({ alg: 'HS256', typ: 'JWT', ...head })}.${encoded(claims)}`
    return `${text}.${createHmac(hash, secret).update(text).digest('base64url')}`
  }
  const [head = '', body = '', signature = ''] = sampleTokens.token.split('.')
  const claims: Claims = JSON.parse(Buffer.from(body, 'base64url').toString())
  const { exp: _, ...endless } = claims
  const { nbf: __, ...timeless } = claims
  const seconds = Math.floor(Date.now() / 1000)
  const rsa = { kty: 'oct', k: Buffer.from('mine').toString('base64url') }

  test('made with the key of the house is good, so what follows is refused for its own flaw', async () => {
    expect(await getUsername(bearer(signed(claims, right)))).toBe('user')
    expect(await getUsername(bearer(signed({ ...timeless, jti: 'other' }, right)))).toBe('user')
  })

  test.each([
    ['without signature', `${encoded({ alg: 'none', typ: 'JWT' })}.${body}.`],
    ['without signature, and without the last dot', `${encoded({ alg: 'none' })}.${body}`],
    ['of algorithm None', `${encoded({ alg: 'None' })}.${body}.${signature}`],
    ['of algorithm none with a signature', signed(claims, right, { alg: 'none' })],
    ['of no algorithm', signed(claims, right, { alg: undefined })],
    ['of HS384 with the right key', signed(claims, right, { alg: 'HS384' }, 'sha384')],
    ['of HS512 with the right key', signed(claims, right, { alg: 'HS512' }, 'sha512')],
    ['of RS256 signed with the right key', signed(claims, right, { alg: 'RS256' })],
    ['of an empty key', signed(claims, '')],
    ['of a key that is the tenant’s id', signed(claims, home.id)],
    ['of another tenant’s key', signed(claims, foreign)],
    ['of a key that it brings along', signed(claims, 'mine', { jwk: rsa })],
    ['with extensions that nobody understands', signed(claims, right, { crit: ['x'], x: 1 })],
    ['whose signature was cut', `${head}.${body}.${signature.slice(0, -4)}`],
    ['whose signature is missing', `${head}.${body}.`],
    ['whose user was changed', `${head}.${encoded({ ...claims, sub: home.users.admin })}.${signature}`],
    ['for another user than its session’s', signed({ ...claims, sub: home.users.admin }, right)],
    ['for another tenant', signed({ ...claims, tid: otherTenant.id }, right)],
    ['for no tenant', signed({ ...claims, tid: undefined }, right)],
    ['of a session that never was', signed({ ...claims, sid: Bun.randomUUIDv7() }, right)],
    ['of no session', signed({ ...claims, sid: undefined }, right)],
    ['of an earlier version of its user', signed({ ...claims, ver: 0 }, right)],
    ['of a later version of its user', signed({ ...claims, ver: 2 }, right)],
    ['that has expired', signed({ ...claims, nbf: seconds - 120, exp: seconds - 60 }, right)],
    ['that never expires', signed(endless, right)],
    ['that expires at no number', signed({ ...claims, exp: 'never' }, right)],
    ['that is not good yet', signed({ ...claims, nbf: seconds + 120 }, right)],
    ['that is no JSON', `${head}.${Buffer.from('sub').toString('base64url')}.${signature}`],
  ])('%s is refused, however often it comes', async (_, forged) => {
    for (let times = 0; times < 2; times++)
      expect(statusAndCode(await stranger.get('/me', bearer(forged)))).toEqual(UNAUTHENTICATED)
  })

  test('is good for fifteen minutes, also for who used it a moment before', async () => {
    const { token } = await signInForTokens(home, 'user')
    advanceClock(14 * MINUTE + 55 * SECOND)
    expect((await stranger.get('/me', bearer(token))).status).toBe(200)
    advanceClock(6 * SECOND)
    expect(statusAndCode(await stranger.get('/me', bearer(token)))).toEqual(UNAUTHENTICATED)
  })

  test('that is used for the first time after its end is refused', async () => {
    const { token } = await signInForTokens(home, 'user')
    advanceClock(15 * MINUTE + SECOND)
    expect(statusAndCode(await stranger.get('/me', bearer(token)))).toEqual(UNAUTHENTICATED)
  })

  test('of a session that was ended elsewhere is refused at once, though it was good a moment before', async () => {
    const { token } = await signInForTokens(home, 'editor')
    const [session] = (await stranger.get('/me/sessions', bearer(token))).body.filter(
      ({ current }: { current: boolean }) => current,
    )
    for (let times = 0; times < 3; times++) expect((await stranger.get('/me', bearer(token))).status).toBe(200)
    expect((await home.as('editor').delete(`/me/sessions/${session._id}`)).status).toBe(200)
    expect(statusAndCode(await stranger.get('/me', bearer(token)))).toEqual(UNAUTHENTICATED)
  })

  test('that is refused while many use it at once is refused to all of them', async () => {
    const { token } = await signInForTokens(home, 'editor')
    const many = () => Promise.all([...Array(20).keys()].map(() => stranger.get('/me', bearer(token))))
    expect(new Set((await many()).map(({ status }) => status))).toEqual(new Set([200]))
    await stranger.post('/logout', undefined, bearer(token))
    expect(new Set((await many()).map(({ status }) => status))).toEqual(new Set([401]))
  })
})
