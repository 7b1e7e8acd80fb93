import { afterEach, describe, expect, test } from 'bun:test'
import { authenticate } from '../../src/accounts/authentication'
import { UNAUTHENTICATED } from '../expectations'
import { apiClient, createTestTenant, statusAndCode, type TestResponse } from '../test-tenant'
import {
  advanceClock,
  bearer,
  clearsSessionCookie,
  MINUTE,
  readSetCookie,
  resetClock,
  signInForCookie,
  signInForTokens,
} from './session-fixtures'

const [home, abroad] = [await createTestTenant(), await createTestTenant()]
const { origin } = home
const apiKey = (token: string) => ({ 'x-api-key': token })
const deadCookie = { cookie: `atoll_${home.id}=${'x'.repeat(43)}` }
const CROSS_SITE = [403, 'CROSS_SITE']
const REPLAYED_HEADER = 'idempotency-replayed'

afterEach(resetClock)

type Headers = Record<string, string>
type Host = string

/** A plain request, and one with an Idempotency-Key, both with these credentials. */
const callGuard = (headers: Headers, host: Host = origin) => apiClient(host, headers).get('/me')
const callOnce = (headers: Headers, key: string, host: Host = origin) =>
  apiClient(host, headers).post('/me', { firstName: 'Ada' }, { 'idempotency-key': key })

const outcomeOf = (answer: TestResponse) => (answer.status === 200 ? answer.body.username : statusAndCode(answer))

type Case = { name: string; headers: () => Promise<Headers>; host?: Host; outcome: unknown; clears?: boolean }

const [token, cookie] = [
  async () => bearer((await signInForTokens(home, 'user')).token),
  () => signInForCookie(home, 'other'),
]
const cases: Case[] = [
  { name: 'nothing', headers: async () => ({}), outcome: UNAUTHENTICATED },
  { name: 'an API token', headers: async () => apiKey(home.tokens.admin), outcome: 'admin' },
  {
    name: 'an API token of another tenant',
    headers: async () => apiKey(abroad.tokens.admin),
    outcome: UNAUTHENTICATED,
  },
  { name: 'an unknown API token', headers: async () => apiKey(`atl_${'0'.repeat(64)}`), outcome: UNAUTHENTICATED },
  { name: 'an access token', headers: token, outcome: 'user' },
  {
    name: 'an access token in x-api-key',
    headers: async () => apiKey((await signInForTokens(home, 'user')).token),
    outcome: UNAUTHENTICATED,
  },
  {
    name: 'an access token of another tenant',
    headers: async () => bearer((await signInForTokens(abroad, 'user')).token),
    outcome: UNAUTHENTICATED,
  },
  { name: 'Basic authorization', headers: async () => ({ authorization: 'Basic eDp5' }), outcome: UNAUTHENTICATED },
  { name: 'a session cookie', headers: cookie, outcome: 'other' },
  { name: 'a session cookie that has ended', headers: async () => deadCookie, outcome: UNAUTHENTICATED, clears: true },
  {
    name: 'two session cookies',
    headers: async () => ({ cookie: `${(await cookie()).cookie}; ${(await cookie()).cookie}` }),
    outcome: UNAUTHENTICATED,
  },
  {
    name: 'a session cookie at the host of another tenant',
    headers: async () => ({ ...(await cookie()), tenant: home.id }),
    host: abroad.origin,
    outcome: [403, 'COOKIE_OF_ANOTHER_HOST'],
  },
  {
    name: 'an ended session cookie at the host of another tenant',
    headers: async () => ({ ...deadCookie, tenant: home.id }),
    host: abroad.origin,
    outcome: [403, 'COOKIE_OF_ANOTHER_HOST'],
  },
  {
    name: 'a session cookie on the caller’s own machine',
    headers: async () => ({ ...(await cookie()), tenant: home.id }),
    host: 'http://localhost:5173',
    outcome: 'other',
  },
  {
    name: 'an API token at the host of another tenant',
    headers: async () => ({ ...apiKey(home.tokens.admin), ...(await cookie()), tenant: home.id }),
    host: abroad.origin,
    outcome: 'admin',
  },
  {
    name: 'an API token, an access token and a cookie',
    headers: async () => ({ ...apiKey(home.tokens.admin), ...(await token()), ...(await cookie()) }),
    outcome: 'admin',
  },
  {
    name: 'an access token and a cookie',
    headers: async () => ({ ...(await token()), ...(await cookie()) }),
    outcome: 'user',
  },
  {
    name: 'a wrong API token, an access token and a cookie',
    headers: async () => ({ ...apiKey('x'), ...(await token()), ...(await cookie()) }),
    outcome: UNAUTHENTICATED,
  },
  {
    name: 'a wrong access token and a cookie',
    headers: async () => ({ ...bearer('x'), ...(await cookie()) }),
    outcome: UNAUTHENTICATED,
  },
  {
    name: 'empty headers and a cookie',
    headers: async () => ({ 'x-api-key': '', authorization: '', ...(await cookie()) }),
    outcome: 'other',
  },
  {
    name: 'an access token and an ended cookie',
    headers: async () => ({ ...(await token()), ...deadCookie }),
    outcome: 'user',
  },
]

describe('a request with', () => {
  test.each(cases)('$name has the same caller with and without an Idempotency-Key', async (each) => {
    const { host, outcome, clears = false } = each
    const [headers, key] = [await each.headers(), crypto.randomUUID()]
    const plain = await callGuard(headers, host)
    expect(outcomeOf(plain)).toEqual(outcome)
    for (const replayed of [null, plain.status === 200 ? 'true' : null]) {
      const answer = await callOnce(headers, key, host)
      expect(outcomeOf(answer)).toEqual(outcome)
      expect(answer.headers.get(REPLAYED_HEADER)).toBe(replayed)
      expect(clearsSessionCookie(answer, home)).toBe(clears)
      expect(answer.headers.has('set-cookie')).toBe(clears)
    }
    expect(clearsSessionCookie(plain, home)).toBe(clears)
    expect(plain.headers.has('set-cookie')).toBe(clears)
  })
})

describe('an Idempotency-Key', () => {
  test('an Idempotency-Key belongs to the first credential of a request', async () => {
    const key = crypto.randomUUID()
    const [first, second, third] = [apiKey(home.tokens.admin), await token(), await cookie()]
    const replayed = async (headers: Headers) => (await callOnce(headers, key)).headers.get(REPLAYED_HEADER)
    expect(await replayed({ ...first, ...second, ...third })).toBeNull()
    expect(await replayed(first)).toBe('true')
    expect(await replayed({ ...second, ...third })).toBeNull()
    expect(await replayed(second)).toBe('true')
    expect(await replayed(third)).toBeNull()
    // Each session of a user may ask again, a program of theirs may not.
    expect(await replayed(await token())).toBe('true')
    expect(await replayed(await signInForCookie(home, 'user'))).toBe('true')
    expect(await replayed(apiKey(home.tokens.user))).toBeNull()
  })

  test('a wrong credential beside a good one does not get the stored answer', async () => {
    const key = crypto.randomUUID()
    const [session, bearerToken] = [await cookie(), await token()]
    for (const good of [session, bearerToken]) expect((await callOnce(good, key)).status).toBe(200)
    for (const headers of [
      { ...session, ...apiKey('x') },
      { ...session, ...bearer('x') },
      { ...bearerToken, ...apiKey('x') },
    ]) {
      const answer = await callOnce(headers, key)
      expect([outcomeOf(answer), answer.headers.get(REPLAYED_HEADER)]).toEqual([UNAUTHENTICATED, null])
    }
  })

  test('a cross-site request with a cookie gets 403, the first time and when it is repeated', async () => {
    const [session, key] = [await cookie(), crypto.randomUUID()]
    const foreign = { ...session, origin: 'https://evil.example' }
    expect(outcomeOf(await callOnce(foreign, key))).toEqual(CROSS_SITE)
    expect((await callOnce(session, key)).status).toBe(200)
    const again = await callOnce(foreign, key)
    expect([outcomeOf(again), again.headers.get(REPLAYED_HEADER)]).toEqual([CROSS_SITE, null])
    expect((await callOnce({ ...(await token()), origin: 'https://evil.example' }, key)).status).toBe(200)
  })

  test('a request with an Idempotency-Key renews a cookie that is older than 30 minutes, once', async () => {
    const [session, early] = [await cookie(), await cookie()]
    expect((await callOnce(early, crypto.randomUUID())).headers.has('set-cookie')).toBe(false)
    advanceClock(31 * MINUTE)
    const renewed = await callOnce(session, crypto.randomUUID())
    expect(readSetCookie(renewed).cookie).toBe(session.cookie)
    expect((await callOnce(session, crypto.randomUUID())).headers.has('set-cookie')).toBe(false)
    const read = await callGuard(early)
    expect(readSetCookie(read).cookie).toBe(early.cookie)
  })

  test('the key of an impersonating admin belongs to the admin, by every credential', async () => {
    const as = { 'x-impersonate-user': home.users.other }
    for (const headers of [
      apiKey(home.tokens.admin),
      bearer((await signInForTokens(home, 'admin')).token),
      await signInForCookie(home, 'admin'),
    ]) {
      const key = crypto.randomUUID()
      const answers = [await callOnce(headers, key), await callOnce({ ...headers, ...as }, key)]
      expect(answers.map(outcomeOf)).toEqual(['admin', 'other'])
      expect(answers.map((answer) => answer.headers.get(REPLAYED_HEADER))).toEqual([null, null])
      expect((await callOnce({ ...headers, ...as }, key)).headers.get(REPLAYED_HEADER)).toBe('true')
      expect(outcomeOf(await callOnce({ ...(await token()), ...as }, key))).toEqual([403, 'FORBIDDEN'])
      expect(outcomeOf(await callOnce(as, key))).toEqual(UNAUTHENTICATED)
    }
  })
})

test('authenticate changes nothing: only the guard renews a cookie', async () => {
  const session = await cookie()
  const request = new Request(origin, { headers: session })
  expect(await authenticate(new Request(origin), home.tenant)).toBeUndefined()
  expect(await authenticate(request, home.tenant, { readsCookie: false })).toBeUndefined()
  expect(await authenticate(new Request(origin, { headers: deadCookie }), home.tenant)).toMatchObject({
    session: undefined,
  })
  advanceClock(31 * MINUTE)
  const expires = async () => home.tenant.db.query('select hash, expires from session_keys order by hash')
  const before = await expires()
  expect(await authenticate(request, home.tenant)).toMatchObject({ session: { actor: { user: home.users.other } } })
  expect(await expires()).toEqual(before)
  expect((await callGuard(session)).headers.has('set-cookie')).toBe(true)
  expect(await expires()).not.toEqual(before)
})
