import { afterEach, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { setRoles } from '../../src/accounts/users/users'
import { deriveKey } from '../../src/tenancy/installation-keys'
import { FORBIDDEN, UNAUTHENTICATED } from '../expectations'
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
const { anonymous } = home
const sampleTokens = await signInForTokens(home, 'user')

const toApiKeyHeader = (token: string) => ({ 'x-api-key': token })
const getUsername = async (headers: Record<string, string>) => (await anonymous.get('/me', headers)).body.username

afterEach(resetClock)

describe('credentials', () => {
  test('an API token takes precedence over a bearer token, and a bearer token over a cookie', async () => {
    const cookie = await signInForCookie(home, 'other')
    const token = bearer((await signInForTokens(home, 'user')).token)
    expect(await getUsername({ ...cookie, ...token, ...toApiKeyHeader(home.tokens.admin) })).toBe('admin')
    expect(await getUsername({ ...cookie, ...token })).toBe('user')
    expect(await getUsername(cookie)).toBe('other')
    expect(await getUsername({ Authorization: token.authorization.replace('Bearer', 'bearer') })).toBe('user')
  })

  test('an invalid credential gets 401 UNAUTHENTICATED even if valid credentials accompany it', async () => {
    const cookie = await signInForCookie(home, 'user')
    const token = bearer((await signInForTokens(home, 'user')).token)
    const answers = [
      await anonymous.get('/me', { ...cookie, ...token, ...toApiKeyHeader(`atl_${'0'.repeat(64)}`) }),
      await anonymous.get('/me', { ...cookie, ...token, ...toApiKeyHeader('x') }),
      await anonymous.get('/me', { ...cookie, ...bearer('x.y.z') }),
      await anonymous.get('/me', { ...cookie, authorization: 'Bearer' }),
      await anonymous.get('/me', { ...cookie, authorization: 'Basic dXNlcjp1c2Vy' }),
    ]
    for (const answer of answers) expect(statusAndCode(answer)).toEqual(UNAUTHENTICATED)
  })

  test('an invalid credential gets 401 where anonymous requests are admitted', async () => {
    const path = '/blueprints/nothing/entities'
    expect((await anonymous.get(path)).status).not.toBe(401)
    const invalidCookie = { cookie: `atoll_${home.id}=${'x'.repeat(43)}` }
    for (const bad of [toApiKeyHeader('x'), bearer('x'), invalidCookie])
      expect(statusAndCode(await anonymous.get(path, bad))).toEqual(UNAUTHENTICATED)
  })

  test('a 401 response to an invalid cookie clears the cookie', async () => {
    const invalidCookie = { cookie: `atoll_${home.id}=${'x'.repeat(43)}` }
    for (const answer of [
      await anonymous.get('/me', invalidCookie),
      await anonymous.post('/me', { name: 'x' }, invalidCookie),
      await anonymous.get('/blueprints/nothing/entities', invalidCookie),
      await anonymous.post('/logout', undefined, invalidCookie),
    ]) {
      expect(statusAndCode(answer)).toEqual(UNAUTHENTICATED)
      expect(clearsSessionCookie(answer, home)).toBe(true)
    }
  })

  test('a 401 response because of another credential keeps a valid cookie', async () => {
    const answer = await anonymous.get('/me', { ...(await signInForCookie(home, 'user')), ...bearer('x') })
    expect(answer.status).toBe(401)
    expect(answer.headers.get('set-cookie')).toBeNull()
  })

  test('open routes ignore credentials', async () => {
    const bad = { ...toApiKeyHeader('x'), cookie: `atoll_${home.id}=x` }
    const { refreshToken } = await signInForTokens(home, 'user')
    expect((await anonymous.post('/token/refresh', { refreshToken }, bad)).status).toBe(200)
    for (const path of ['/signin', '/signup'])
      for (const headers of [bad, bearer('x')])
        expect(statusAndCode(await anonymous.post(path, {}, headers))).toEqual([400, 'INVALID_INPUT'])
    expect((await callApi('GET', `${home.origin}/health`, { headers: bad })).status).toBe(200)
  })

  test('the 401 response explains a credential that was sent in the wrong header or to the wrong tenant', async () => {
    const { token } = await signInForTokens(home, 'user')
    const explain = async (headers: Record<string, string>, at = anonymous) => {
      const answer = await at.get('/me', headers)
      expect(statusAndCode(answer)).toEqual(UNAUTHENTICATED)
      return answer.body.message as string
    }
    expect(await explain(bearer(home.tokens.user))).toBe('This is an API token. Send it in the header x-api-key.')
    expect(await explain(bearer(`atl_${'0'.repeat(64)}`))).toContain('x-api-key')
    expect(await explain(toApiKeyHeader(token))).toContain('Authorization: Bearer')
    for (const authorization of ['Basic YWRhOnNlY3JldA==', 'Bearer', 'Digest x'])
      expect(await explain({ authorization })).toStartWith('Only Bearer tokens')
    expect(await explain(bearer(token), (await createTestTenant()).anonymous)).toStartWith(
      'This token belongs to another tenant.',
    )
    for (const broken of ['x', 'a.b.c', `${token}x`, 'a.e30.c', 'a.bnVsbA.c', `x.${btoa('{"tid":5}')}`.slice(0, 3)])
      expect(await explain(bearer(broken)), broken).toStartWith('The token is invalid or has expired.')
  })

  test('a credential that is sent as another kind of credential gets 401 UNAUTHENTICATED', async () => {
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
    for (const headers of swapped) expect(statusAndCode(await anonymous.get('/me', headers))).toEqual(UNAUTHENTICATED)
  })

  test('the stored hash of a session key is not accepted as cookie', async () => {
    const { cookie } = await signInForCookie(home, 'user')
    const hash = new Bun.CryptoHasher('sha256').update(cookie.split('=')[1] ?? '').digest('hex')
    expect(statusAndCode(await anonymous.get('/me', { cookie: `atoll_${home.id}=${hash}` }))).toEqual(UNAUTHENTICATED)
  })
})

describe('authorization by roles', () => {
  test('POST /api/blueprints gets 401 without a credential, 403 without the role, and 400 for an empty body with the role', async () => {
    expect(statusAndCode(await anonymous.post('/blueprints', {}))).toEqual(UNAUTHENTICATED)
    expect(statusAndCode(await home.as('user').post('/blueprints', {}))).toEqual(FORBIDDEN)
    // Callers with a sufficient role reach the validation of the body.
    for (const name of ['editor', 'admin'] as const)
      expect(statusAndCode(await home.as(name).post('/blueprints', {}))).toEqual([400, 'INVALID_INPUT'])
  })

  test('a change of roles applies at once to API tokens, access tokens and cookies', async () => {
    const callers = [
      toApiKeyHeader(home.tokens.other),
      bearer((await signInForTokens(home, 'other')).token),
      await signInForCookie(home, 'other'),
    ]
    const refusals = async () => {
      const answers = []
      for (const headers of callers) answers.push(await anonymous.post('/blueprints', {}, headers))
      return answers.map(({ status }) => status)
    }
    expect(await refusals()).toEqual([403, 403, 403])
    await setRoles(home.tenant, 'other', ['plugin'])
    expect(await refusals()).toEqual([400, 400, 400])
    await setRoles(home.tenant, 'other', ['user'])
    expect(await refusals()).toEqual([403, 403, 403])
  })
})

describe('requests from a page of another site', () => {
  const write = (headers: Record<string, string>) => anonymous.post('/me', { metadata: { colour: 'red' } }, headers)
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
    ['sec-fetch-site', 'same-site'],
  ])('a write by cookie with the header %s: %s gets 403 CROSS_SITE', async (name, value) => {
    const cookie = await signInForCookie(home, 'user')
    const answer = await write({ ...cookie, [name]: value })
    expect(statusAndCode(answer)).toEqual([403, 'CROSS_SITE'])
    expect(answer.headers.get('set-cookie')).toBeNull()
    expect((await anonymous.get('/me', cookie)).body.metadata).toEqual({})
    expect(statusAndCode(await anonymous.post('/logout', undefined, { ...cookie, [name]: value }))).toEqual([
      403,
      'CROSS_SITE',
    ])
    expect(statusAndCode(await anonymous.delete('/me/sessions/x', { ...cookie, [name]: value }))).toEqual([
      403,
      'CROSS_SITE',
    ])
    expect((await anonymous.get('/me', { ...cookie, [name]: value })).status).toBe(200)
  })

  test('a cross-site write gets 403 CROSS_SITE before its body is parsed', async () => {
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

  test('writes from the same site, from programs and with explicit credentials are accepted', async () => {
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

describe('credentials at another tenant', () => {
  const paths = ['/me', '/me/sessions', '/blueprints', '/blueprints/nothing/entities']

  test('API tokens, access tokens and refresh tokens of one tenant get 401 at another', async () => {
    const { token, refreshToken } = await signInForTokens(home, 'admin')
    for (const headers of [toApiKeyHeader(home.tokens.admin), bearer(token), bearer(refreshToken)])
      for (const path of paths)
        expect(statusAndCode(await otherTenant.anonymous.get(path, headers))).toEqual(UNAUTHENTICATED)
    expect(statusAndCode(await otherTenant.anonymous.post('/token/refresh', { refreshToken }))).toEqual(UNAUTHENTICATED)
    expect((await anonymous.get('/me', bearer(token))).status).toBe(200)
  })

  test('a session cookie gets 401 at another tenant, even under the cookie name of that tenant', async () => {
    const { cookie } = await signInForCookie(home, 'admin')
    expect(statusAndCode(await otherTenant.anonymous.get('/me', { cookie }))).toEqual(UNAUTHENTICATED)
    const renamed = { cookie: cookie.replace(home.id, otherTenant.id) }
    for (const path of paths)
      expect(statusAndCode(await otherTenant.anonymous.get(path, renamed))).toEqual(UNAUTHENTICATED)
    expect((await anonymous.get('/me', { cookie })).status).toBe(200)
  })

  test('credentials of one tenant are rejected when the tenant header names another', async () => {
    const tenantHeader = { tenant: otherTenant.id }
    const { token } = await signInForTokens(home, 'admin')
    const { cookie } = await signInForCookie(home, 'admin')
    const renamed = cookie.replace(home.id, otherTenant.id)
    for (const path of paths.slice(0, 3)) {
      for (const headers of [toApiKeyHeader(home.tokens.admin), bearer(token), { cookie }])
        expect(statusAndCode(await anonymous.get(path, { ...headers, ...tenantHeader }))).toEqual(UNAUTHENTICATED)
      const answer = await anonymous.get(path, { cookie: renamed, ...tenantHeader })
      expect(statusAndCode(answer)).toEqual([403, 'COOKIE_OF_ANOTHER_HOST'])
    }
    // The header itself works for credentials of that tenant.
    expect(await getUsername({ ...toApiKeyHeader(otherTenant.tokens.user), ...tenantHeader })).toBe('user')
  })

  test('one browser can hold session cookies of two tenants', async () => {
    const [here, there] = [
      (await signInForCookie(home, 'user')).cookie,
      (await signInForCookie(otherTenant, 'other')).cookie,
    ]
    const cookie = `theme=dark; ${there}; ${here}`
    expect((await home.anonymous.get('/me', { cookie })).body.username).toBe('user')
    expect((await otherTenant.anonymous.get('/me', { cookie })).body.username).toBe('other')
  })
})

const tenantKey = await deriveKey(home.id, 'access-token')
const otherTenantKey = await deriveKey(otherTenant.id, 'access-token')

describe('access tokens', () => {
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

  test('an access token signed by the key of the tenant is accepted, so forged ones fail for their own flaw', async () => {
    expect(await getUsername(bearer(signed(claims, tenantKey)))).toBe('user')
    expect(await getUsername(bearer(signed({ ...timeless, jti: 'other' }, tenantKey)))).toBe('user')
  })

  test.each([
    ['without signature', `${encoded({ alg: 'none', typ: 'JWT' })}.${body}.`],
    ['without signature, and without the last dot', `${encoded({ alg: 'none' })}.${body}`],
    ['of algorithm None', `${encoded({ alg: 'None' })}.${body}.${signature}`],
    ['of algorithm none with a signature', signed(claims, tenantKey, { alg: 'none' })],
    ['of no algorithm', signed(claims, tenantKey, { alg: undefined })],
    ['of HS384 with the right key', signed(claims, tenantKey, { alg: 'HS384' }, 'sha384')],
    ['of HS512 with the right key', signed(claims, tenantKey, { alg: 'HS512' }, 'sha512')],
    ['of RS256 signed with the right key', signed(claims, tenantKey, { alg: 'RS256' })],
    ['signed by an empty key', signed(claims, '')],
    ['signed by the ID of the tenant', signed(claims, home.id)],
    ['signed by the key of another tenant', signed(claims, otherTenantKey)],
    ['signed by a key in its own header', signed(claims, 'mine', { jwk: rsa })],
    ['with unknown critical extensions', signed(claims, tenantKey, { crit: ['x'], x: 1 })],
    ['whose signature was cut', `${head}.${body}.${signature.slice(0, -4)}`],
    ['whose signature is missing', `${head}.${body}.`],
    ['whose user was changed', `${head}.${encoded({ ...claims, sub: home.users.admin })}.${signature}`],
    ['for another user than that of its session', signed({ ...claims, sub: home.users.admin }, tenantKey)],
    ['for another tenant', signed({ ...claims, tid: otherTenant.id }, tenantKey)],
    ['for no tenant', signed({ ...claims, tid: undefined }, tenantKey)],
    ['of an unknown session', signed({ ...claims, sid: Bun.randomUUIDv7() }, tenantKey)],
    ['of no session', signed({ ...claims, sid: undefined }, tenantKey)],
    ['of an earlier version of its user', signed({ ...claims, ver: 0 }, tenantKey)],
    ['of a later version of its user', signed({ ...claims, ver: 2 }, tenantKey)],
    ['that has expired', signed({ ...claims, nbf: seconds - 120, exp: seconds - 60 }, tenantKey)],
    ['that never expires', signed(endless, tenantKey)],
    ['whose expiry is not a number', signed({ ...claims, exp: 'never' }, tenantKey)],
    ['that is not valid yet', signed({ ...claims, nbf: seconds + 120 }, tenantKey)],
    ['whose claims are not JSON', `${head}.${Buffer.from('sub').toString('base64url')}.${signature}`],
  ])('an access token %s gets 401 UNAUTHENTICATED at every attempt', async (_, forged) => {
    for (let times = 0; times < 2; times++)
      expect(statusAndCode(await anonymous.get('/me', bearer(forged)))).toEqual(UNAUTHENTICATED)
  })

  test('an access token expires after fifteen minutes, even when it was just used', async () => {
    const { token } = await signInForTokens(home, 'user')
    advanceClock(14 * MINUTE + 55 * SECOND)
    expect((await anonymous.get('/me', bearer(token))).status).toBe(200)
    advanceClock(6 * SECOND)
    expect(statusAndCode(await anonymous.get('/me', bearer(token)))).toEqual(UNAUTHENTICATED)
  })

  test('an access token that is first used after its expiry gets 401', async () => {
    const { token } = await signInForTokens(home, 'user')
    advanceClock(15 * MINUTE + SECOND)
    expect(statusAndCode(await anonymous.get('/me', bearer(token)))).toEqual(UNAUTHENTICATED)
  })

  test('an access token gets 401 at once after its session was ended elsewhere', async () => {
    const { token } = await signInForTokens(home, 'editor')
    const [session] = (await anonymous.get('/me/sessions', bearer(token))).body.filter(
      ({ current }: { current: boolean }) => current,
    )
    for (let times = 0; times < 3; times++) expect((await anonymous.get('/me', bearer(token))).status).toBe(200)
    expect((await home.as('editor').delete(`/me/sessions/${session._id}`)).status).toBe(200)
    expect(statusAndCode(await anonymous.get('/me', bearer(token)))).toEqual(UNAUTHENTICATED)
  })

  test('twenty simultaneous requests by one access token all succeed before a logout and all get 401 after it', async () => {
    const { token } = await signInForTokens(home, 'editor')
    const many = () => Promise.all([...Array(20).keys()].map(() => anonymous.get('/me', bearer(token))))
    expect(new Set((await many()).map(({ status }) => status))).toEqual(new Set([200]))
    await anonymous.post('/logout', undefined, bearer(token))
    expect(new Set((await many()).map(({ status }) => status))).toEqual(new Set([401]))
  })
})
