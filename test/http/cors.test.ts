import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { config } from '../../src/config'
import { signInForCookie } from '../accounts/session-fixtures'
import { createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { callApi, createTestTenant, statusAndCode, type TestRequest, type TestResponse } from '../test-tenant'

setDefaultTimeout(30_000)

const APP_CONFIGURATION = '/configurations/app-configuration'
const SHOP = 'https://shop.example:8443'
let home: Awaited<ReturnType<typeof createTestTenant>>
let otherTenant: Awaited<ReturnType<typeof createTestTenant>>
const ownOrigin = () => `https://${home.id}.site.example`
const otherOrigin = () => `https://${otherTenant.id}.site.example`

beforeAll(async () => {
  ;[home, otherTenant] = [await createTestTenant(), await createTestTenant()]
  await home.as('admin').put(APP_CONFIGURATION, { websiteUrls: [`${ownOrigin()}/app/`, 'http://localhost:5173'] })
  await otherTenant.as('admin').put(APP_CONFIGURATION, { websiteUrls: [otherOrigin()] })
})

/** The CORS grant of a response. */
const toGrant = ({ headers }: TestResponse) => ({
  origin: headers.get('access-control-allow-origin'),
  credentials: headers.get('access-control-allow-credentials'),
})
const expectedGrant = () => ({ origin: ownOrigin(), credentials: 'true' })
const NO_GRANT = { origin: null, credentials: null }

type PreflightOptions = { method?: string; names?: string[]; headers?: Record<string, string>; url?: string }
const sendPreflight = (origin: string, { method = 'PUT', names = [], headers = {}, url }: PreflightOptions = {}) =>
  callApi('OPTIONS', url ?? `${home.origin}/api/me`, {
    headers: {
      ...{ origin, 'access-control-request-method': method, 'sec-fetch-mode': 'cors' },
      ...(names.length && { 'access-control-request-headers': names.join(',') }),
      ...headers,
    },
  })

/**
 * Sends a request as a browser does for a page of this origin, by the CORS protocol of the Fetch standard: a preflight
 * where one is needed, then the request. Returns undefined where the page may not read the response; `header` reads only
 * exposed headers. `credentials` stands for `include`, and false for `omit`.
 */
async function fetchAsBrowser(
  origin: string,
  method: string,
  url: string,
  { headers = {}, body, credentials = true }: TestRequest & { credentials?: boolean } = {},
) {
  const sent: Record<string, string> = body === undefined ? headers : { 'content-type': 'application/json', ...headers }
  const names = Object.keys(sent)
    .filter((name) => name !== 'cookie')
    .sort()
  const passes = ({ headers }: TestResponse) =>
    headers.get('access-control-allow-origin') === origin &&
    (!credentials || headers.get('access-control-allow-credentials') === 'true')
  if (names.length || !['GET', 'HEAD', 'POST'].includes(method)) {
    const preflight = await sendPreflight(origin, { method, names, url })
    const list = (name: string) => (preflight.headers.get(name) ?? '').toLowerCase().split(/, */)
    if (preflight.status > 299 || !passes(preflight)) return
    if (!['get', 'head', 'post', ...list('access-control-allow-methods')].includes(method.toLowerCase())) return
    if (!names.every((name) => list('access-control-allow-headers').includes(name))) return
  }
  const answer = await callApi(method, url, { headers: { ...sent, origin, 'sec-fetch-site': 'cross-site' }, body })
  if (!passes(answer)) return
  const exposed = (answer.headers.get('access-control-expose-headers') ?? '').toLowerCase().split(/, */)
  return { ...answer, header: (name: string) => (exposed.includes(name) ? answer.headers.get(name) : undefined) }
}

describe('CORS for a website of the tenant', () => {
  test('a website of the tenant can use the API with all its methods and headers, and reads the exposed headers', async () => {
    const token = { authorization: `Bearer x` }
    const refused = await fetchAsBrowser(ownOrigin(), 'GET', `${home.origin}/api/me`, { headers: token })
    expect(refused && statusAndCode(refused)).toEqual([401, 'UNAUTHENTICATED'])
    const key = { 'x-api-key': home.tokens.user }
    const blocks = `${home.origin}/api/blocks`
    const created = await fetchAsBrowser(ownOrigin(), 'POST', blocks, {
      headers: { ...key, 'idempotency-key': 'a', 'accept-version': 'v1', 'x-request-id': 'mine' },
      body: { name: 'a', content: 'a' },
    })
    expect(created?.status).toBe(201)
    expect(created?.header('x-request-id')).toBe('mine')
    const path = `${blocks}/${created!.body._id}`
    const changed = await fetchAsBrowser(ownOrigin(), 'PUT', path, {
      headers: { ...key, 'if-match': created!.header('etag')! },
      body: { name: 'b' },
    })
    expect([changed?.status, changed?.body.name]).toEqual([200, 'b'])
    const stale = { ...key, 'if-match': created!.header('etag')! }
    expect((await fetchAsBrowser(ownOrigin(), 'PATCH', path, { headers: stale, body: {} }))?.status).toBe(412)
    await fetchAsBrowser(ownOrigin(), 'POST', blocks, { headers: key, body: { name: 'c', content: 'c' } })
    const listed = await fetchAsBrowser(ownOrigin(), 'GET', `${blocks}?limit=1&count=true`, { headers: key })
    expect([listed?.header('x-total-count'), listed?.header('link')]).toEqual([
      '2',
      '</api/blocks?limit=1&count=true&page=2>; rel="next"',
    ])
    expect((await fetchAsBrowser(ownOrigin(), 'DELETE', path, { headers: key }))?.body).toEqual({ success: true })
    expect((await fetchAsBrowser(ownOrigin(), 'DELETE', path, { headers: key }))?.body.code).toBe('BLOCK_NOT_FOUND')
    const replayed = await fetchAsBrowser(ownOrigin(), 'POST', blocks, {
      headers: { ...key, 'idempotency-key': 'a' },
      body: { name: 'a', content: 'a' },
    })
    expect([replayed?.body, replayed?.header('idempotency-replayed')]).toEqual([created!.body, 'true'])
    for (const [method, at, status] of [
      ['GET', '/nowhere', 404],
      ['PUT', '/me', 405],
    ] as const)
      expect((await fetchAsBrowser(ownOrigin(), method, `${home.origin}/api${at}`, { headers: key }))?.status).toBe(
        status,
      )
    const old = await fetchAsBrowser(ownOrigin(), 'GET', `${home.origin}/api/v1/me`, { headers: key })
    expect(old?.body._id).toBe(home.users.user)
  })

  test('a website of the tenant can write with the session cookie of its visitor', async () => {
    const cookie = await signInForCookie(home, 'user')
    const me = `${home.origin}/api/me`
    const changed = await fetchAsBrowser(ownOrigin(), 'POST', me, { headers: cookie, body: { firstName: 'Ada' } })
    expect([changed?.status, changed?.body.firstName]).toEqual([200, 'Ada'])
    expect((await fetchAsBrowser(ownOrigin(), 'POST', `${home.origin}/api/logout`, { headers: cookie }))?.status).toBe(
      200,
    )
  })

  test('a website at a port of localhost can use the API, and a page at another port cannot', async () => {
    const local = 'http://localhost:5173'
    const key = { 'x-api-key': home.tokens.user, tenant: home.id }
    expect((await fetchAsBrowser(local, 'GET', `${home.origin}/api/me`, { headers: key }))?.status).toBe(200)
    expect(
      await fetchAsBrowser('http://localhost:5174', 'GET', `${home.origin}/api/me`, { headers: key }),
    ).toBeUndefined()
  })

  test('a change of websiteUrls takes effect at once', async () => {
    const tenant = await createTestTenant()
    const origin = `https://${tenant.id}.site.example`
    const me = () =>
      fetchAsBrowser(origin, 'GET', `${tenant.origin}/api/me`, { headers: { 'x-api-key': tenant.tokens.user } })
    expect(await me()).toBeUndefined()
    await tenant.as('admin').put(APP_CONFIGURATION, { websiteUrls: [origin] })
    expect((await me())?.status).toBe(200)
    await tenant.as('admin').put(APP_CONFIGURATION, { websiteUrls: [] })
    expect(await me()).toBeUndefined()
  })
})

describe('CORS for other sites', () => {
  test.each([
    'https://evil.example',
    'null',
    'nonsense',
    '*',
    SHOP,
    'http://localhost:5174/',
    'http://localhost.evil.example',
    'http://127.0.0.1.evil.example',
    'http://10.0.0.1:5173',
    'ftp://localhost',
    () => ownOrigin().replace('https', 'http'),
    () => `${ownOrigin()}:8443`,
    () => `${ownOrigin()}.evil.example`,
    () => `${ownOrigin()}/`,
    () => `https://evil-${home.id}.site.example`,
    otherOrigin,
  ])('the origin %p gets no CORS grant but Vary: Origin, and a write by cookie gets 403 CROSS_SITE', async (one) => {
    const origin = typeof one === 'string' ? one : one()
    const key = { 'x-api-key': home.tokens.user }
    for (const answer of [
      await sendPreflight(origin),
      await callApi('GET', `${home.origin}/api/me`, { headers: { ...key, origin } }),
      await callApi('GET', `${home.origin}/api/none`, { headers: { ...key, origin } }),
      await callApi('POST', `${home.origin}/api/me`, { headers: { ...key, origin }, raw: '{' }),
    ]) {
      expect(toGrant(answer)).toEqual(NO_GRANT)
      expect(answer.headers.get('vary')).toContain('Origin')
      expect(answer.headers.get('access-control-allow-methods')).toBeNull()
      expect(answer.headers.get('access-control-expose-headers')).toBeNull()
    }
    const cookie = await signInForCookie(home, 'user')
    const write = { ...cookie, origin, 'content-type': 'application/json' }
    expect(statusAndCode(await callApi('POST', `${home.origin}/api/me`, { headers: write, raw: '{}' }))).toEqual([
      403,
      'CROSS_SITE',
    ])
  })

  test('a static file is granted to every origin', async () => {
    const editor = home.as('editor')
    await editor.post('/components', { identifier: 'card', content: 'export const a = 1' })
    const [{ js }] = (await home.anonymous.get('/static')).body
    for (const origin of ['https://evil.example', ownOrigin()]) {
      const { headers } = await callApi('GET', `${home.origin}${js}`, { headers: { origin } })
      expect([headers.get('access-control-allow-origin'), headers.get('vary')]).toEqual(['*', 'tenant'])
    }
  })
})

describe('CORS for pages at localhost that are not websites of the tenant', () => {
  const pages = ['http://localhost:5174', 'https://localhost:7443', 'http://127.0.0.1:7080', 'http://[::1]:7000']

  test.each(pages)('an unlisted page at %s can use the API by token and sign in, without cookies', async (origin) => {
    const url = `${home.origin}/api/me`
    const headers = { 'x-api-key': home.tokens.user }
    expect((await fetchAsBrowser(origin, 'GET', url, { headers, credentials: false }))?.body._id).toBe(home.users.user)
    const byHeader = { headers: { ...headers, tenant: home.id }, credentials: false }
    expect((await fetchAsBrowser(origin, 'GET', 'http://nobody.test/api/me', byHeader))?.status).toBe(200)
    const body = { username: 'nobody', password: 'wrong', authType: 'oauth' }
    const refused = await fetchAsBrowser(origin, 'POST', `${home.origin}/api/signin`, { body, credentials: false })
    expect(refused && statusAndCode(refused)).toEqual([401, 'INVALID_CREDENTIALS'])
    const unknownTenant = await fetchAsBrowser(origin, 'GET', 'http://nobody.test/api/me', {
      headers,
      credentials: false,
    })
    expect(unknownTenant && statusAndCode(unknownTenant)).toEqual([404, 'TENANT_NOT_FOUND'])
  })

  test.each(pages)(
    'an unlisted page at %s can neither read nor write with the session cookie of its visitor',
    async (origin) => {
      const headers = await signInForCookie(home, 'user')
      expect(await fetchAsBrowser(origin, 'GET', `${home.origin}/api/me`, { headers })).toBeUndefined()
      const answer = await callApi('GET', `${home.origin}/api/me`, { headers: { ...headers, origin } })
      expect([answer.status, toGrant(answer)]).toEqual([200, NO_GRANT])
      expect(toGrant(await sendPreflight(origin))).toEqual({ origin, credentials: null })
      expect(
        statusAndCode(await callApi('POST', `${home.origin}/api/me`, { headers: { ...headers, origin }, body: {} })),
      ).toEqual([403, 'CROSS_SITE'])
    },
  )

  test('a preflight request and the request itself get the same grant, whatever headers the preflight names', async () => {
    for (const names of [[], ['content-type'], ['tenant', 'x-api-key']])
      for (const origin of [...pages, 'https://evil.example', 'null']) {
        const before = toGrant(await sendPreflight(origin, { names }))
        const after = toGrant(await callApi('GET', `${home.origin}/api/me`, { headers: { origin } }))
        expect([origin, names, before]).toEqual([origin, names, after])
      }
  })
})

describe('preflight requests', () => {
  test('a preflight request of a website gets 204 with the allowed methods and headers for every path', async () => {
    for (const path of ['/api/me', '/api/blocks/x', '/api/blueprints/x/entities/import', '/api/v1/me', '/api/none']) {
      const answer = await sendPreflight(ownOrigin(), { url: `${home.origin}${path}` })
      expect([path, answer.status, answer.body, toGrant(answer)]).toEqual([path, 204, undefined, expectedGrant()])
      const { headers } = answer
      expect(headers.get('access-control-allow-methods')).toBe('GET, HEAD, POST, PUT, PATCH, DELETE')
      expect(headers.get('access-control-max-age')).toBe('600')
      for (const name of [
        ...['tenant', 'authorization', 'x-api-key', 'content-type', 'if-match', 'idempotency-key', 'accept-version'],
        ...['x-impersonate-user', 'x-impersonate-workspace', 'x-request-id', 'if-none-match', 'x-encrypted-id'],
      ])
        expect(headers.get('access-control-allow-headers')?.split(', ')).toContain(name)
      expect(headers.get('vary')).toContain('Origin')
    }
  })

  test('OPTIONS without the headers of a preflight returns Allow and the grant of the origin', async () => {
    const plain = await callApi('OPTIONS', `${home.origin}/api/blocks/x`, { headers: { origin: ownOrigin() } })
    expect([plain.status, plain.headers.get('allow'), toGrant(plain)]).toEqual([
      204,
      'GET, PUT, PATCH, DELETE, HEAD',
      expectedGrant(),
    ])
  })

  test('a preflight request that names the tenant header is granted to a website of any tenant', async () => {
    const unassignedUrl = 'http://nobody.test/api/me'
    const preflight = { url: unassignedUrl, names: ['tenant', 'x-api-key'] }
    // A website of any tenant may send the request; the tenant that the request names then decides.
    expect(toGrant(await sendPreflight(ownOrigin(), preflight))).toEqual(expectedGrant())
    expect(toGrant(await sendPreflight(ownOrigin(), { ...preflight, names: ['Tenant'] }))).toEqual(expectedGrant())
    expect(toGrant(await sendPreflight(ownOrigin(), { ...preflight, url: `${otherTenant.origin}/api/me` }))).toEqual(
      expectedGrant(),
    )
    expect(toGrant(await sendPreflight('http://localhost:1', preflight))).toEqual({
      origin: 'http://localhost:1',
      credentials: null,
    })
    expect(toGrant(await sendPreflight('http://localhost:5173', preflight)).credentials).toBe('true')
    for (const [origin, names] of [
      ['https://evil.example', ['tenant']],
      [`${ownOrigin()}:1`, ['tenant']],
      [ownOrigin(), ['x-tenant']],
      [ownOrigin(), []],
    ] as const)
      expect(toGrant(await sendPreflight(origin, { url: unassignedUrl, names: [...names] }))).toEqual(NO_GRANT)

    const key = { 'x-api-key': home.tokens.user, tenant: home.id }
    expect((await fetchAsBrowser(ownOrigin(), 'GET', unassignedUrl, { headers: key }))?.status).toBe(200)
    const wrong = { 'x-api-key': otherTenant.tokens.user, tenant: otherTenant.id }
    expect(await fetchAsBrowser(ownOrigin(), 'GET', unassignedUrl, { headers: wrong })).toBeUndefined()
  })

  describe('preflight requests where ATOLL_TENANT_HEADER is off', () => {
    beforeAll(() => {
      config.ATOLL_TENANT_HEADER = 'off'
    })
    afterAll(() => {
      config.ATOLL_TENANT_HEADER = 'on'
    })
    test('a preflight request that names the tenant header is granted to websites of the host only', async () => {
      const preflight = { url: 'http://nobody.test/api/me', names: ['tenant'] }
      expect(toGrant(await sendPreflight(ownOrigin(), preflight))).toEqual(NO_GRANT)
      expect(toGrant(await sendPreflight(ownOrigin(), { names: ['tenant'] }))).toEqual(expectedGrant())
    })
  })
})

test('a response to a request without an origin has no CORS headers', async () => {
  for (const path of ['/api/me', '/api/none', '/api/blocks']) {
    const { headers } = await callApi('GET', `${home.origin}${path}`, { headers: { 'x-api-key': home.tokens.user } })
    expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
  }
})

test('a running server answers a preflight request and a request of a website', async () => {
  const place = { at: createTempFolder(), env: { ATOLL_DATABASE_URL: config.ATOLL_DATABASE_URL } }
  const id = `c${crypto.randomUUID().slice(0, 8)}`
  await createTenantByCli(place, id)
  await using server = await startAtoll(place)
  const credentials = await signIn(server.url, id)
  const json = { 'content-type': 'application/json' }
  const origin = `https://${id}.example`
  const set = { method: 'PUT', headers: { ...json, ...credentials }, body: JSON.stringify({ websiteUrls: [origin] }) }
  expect((await fetch(`${server.url}/api${APP_CONFIGURATION}`, set)).status).toBe(200)
  const preflightHeaders = {
    origin,
    'access-control-request-method': 'GET',
    'access-control-request-headers': 'authorization,tenant',
  }
  const first = await fetch(`${server.url}/api/me`, { method: 'OPTIONS', headers: preflightHeaders })
  expect([first.status, first.headers.get('access-control-allow-origin')]).toEqual([204, origin])
  const second = await fetch(`${server.url}/api/me`, { headers: { ...credentials, origin } })
  expect([second.status, second.headers.get('access-control-allow-origin')]).toEqual([200, origin])
  expect(second.headers.get('vary')).toEndWith('Origin')
})
