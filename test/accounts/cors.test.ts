import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { config } from '../../src/config'
import { type Answer, ask, house, type Init, refusal } from '../house'
import { emptyFolder, makeTenant, serve, signIn } from '../outside/program'
import { cookieOf } from './people'

setDefaultTimeout(30_000)

const APP = '/configurations/app-configuration'
const SHOP = 'https://shop.example:8443'
let home: Awaited<ReturnType<typeof house>>
let abroad: Awaited<ReturnType<typeof house>>
const own = () => `https://${home.id}.site.example`
const elsewhere = () => `https://${abroad.id}.site.example`

beforeAll(async () => {
  ;[home, abroad] = [await house(), await house()]
  await home.as('admin').put(APP, { websiteUrls: [`${own()}/app/`, 'http://localhost:5173'] })
  await abroad.as('admin').put(APP, { websiteUrls: [elsewhere()] })
})

/** What an answer lets the page of an origin do. */
const allowed = ({ headers }: Answer) => ({
  origin: headers.get('access-control-allow-origin'),
  credentials: headers.get('access-control-allow-credentials'),
})
const YES = () => ({ origin: own(), credentials: 'true' })
const NO = { origin: null, credentials: null }

type Asked = { method?: string; names?: string[]; headers?: Record<string, string>; url?: string }
const preflight = (origin: string, { method = 'PUT', names = [], headers = {}, url }: Asked = {}) =>
  ask('OPTIONS', url ?? `${home.origin}/api/me`, {
    headers: {
      ...{ origin, 'access-control-request-method': method, 'sec-fetch-mode': 'cors' },
      ...(names.length && { 'access-control-request-headers': names.join(',') }),
      ...headers,
    },
  })

/**
 * Asks as a browser does for a page of this origin (the Fetch standard's CORS protocol): first whether it may, unless any
 * page may; undefined where the page gets nothing. Only what is exposed can be read. `credentials` is `include`, or `omit`.
 */
async function browse(
  origin: string,
  method: string,
  url: string,
  { headers = {}, body, credentials = true }: Init & { credentials?: boolean } = {},
) {
  const sent: Record<string, string> = body === undefined ? headers : { 'content-type': 'application/json', ...headers }
  const names = Object.keys(sent)
    .filter((name) => name !== 'cookie')
    .sort()
  const passes = ({ headers }: Answer) =>
    headers.get('access-control-allow-origin') === origin &&
    (!credentials || headers.get('access-control-allow-credentials') === 'true')
  if (names.length || !['GET', 'HEAD', 'POST'].includes(method)) {
    const asked = await preflight(origin, { method, names, url })
    const list = (name: string) => (asked.headers.get(name) ?? '').toLowerCase().split(/, */)
    if (asked.status > 299 || !passes(asked)) return
    if (!['get', 'head', 'post', ...list('access-control-allow-methods')].includes(method.toLowerCase())) return
    if (!names.every((name) => list('access-control-allow-headers').includes(name))) return
  }
  const answer = await ask(method, url, { headers: { ...sent, origin, 'sec-fetch-site': 'cross-site' }, body })
  if (!passes(answer)) return
  const seen = (answer.headers.get('access-control-expose-headers') ?? '').toLowerCase().split(/, */)
  return { ...answer, header: (name: string) => (seen.includes(name) ? answer.headers.get(name) : undefined) }
}

describe('a page of a website of the tenant', () => {
  test('uses the whole API from a browser', async () => {
    const token = { authorization: `Bearer x` }
    const refused = await browse(own(), 'GET', `${home.origin}/api/me`, { headers: token })
    expect(refused && refusal(refused)).toEqual([401, 'UNAUTHENTICATED'])
    const key = { 'x-api-key': home.tokens.user }
    const blocks = `${home.origin}/api/blocks`
    const made = await browse(own(), 'POST', blocks, {
      headers: { ...key, 'idempotency-key': 'a', 'accept-version': 'v1', 'x-request-id': 'mine' },
      body: { name: 'a', content: 'a' },
    })
    expect(made?.status).toBe(201)
    expect(made?.header('x-request-id')).toBe('mine')
    const path = `${blocks}/${made!.body._id}`
    const changed = await browse(own(), 'PUT', path, {
      headers: { ...key, 'if-match': made!.header('etag')! },
      body: { name: 'b' },
    })
    expect([changed?.status, changed?.body.name]).toEqual([200, 'b'])
    const stale = { ...key, 'if-match': made!.header('etag')! }
    expect((await browse(own(), 'PATCH', path, { headers: stale, body: {} }))?.status).toBe(412)
    await browse(own(), 'POST', blocks, { headers: key, body: { name: 'c', content: 'c' } })
    const listed = await browse(own(), 'GET', `${blocks}?limit=1&count=true`, { headers: key })
    expect([listed?.header('x-total-count'), listed?.header('link')]).toEqual([
      '2',
      '</api/blocks?limit=1&count=true&page=2>; rel="next"',
    ])
    expect((await browse(own(), 'DELETE', path, { headers: key }))?.body).toEqual({ success: true })
    expect((await browse(own(), 'DELETE', path, { headers: key }))?.body.code).toBe('BLOCK_NOT_FOUND')
    const replayed = await browse(own(), 'POST', blocks, {
      headers: { ...key, 'idempotency-key': 'a' },
      body: { name: 'a', content: 'a' },
    })
    expect([replayed?.body, replayed?.header('idempotency-replayed')]).toEqual([made!.body, 'true'])
    for (const [method, at, status] of [
      ['GET', '/nowhere', 404],
      ['PUT', '/me', 405],
    ] as const)
      expect((await browse(own(), method, `${home.origin}/api${at}`, { headers: key }))?.status).toBe(status)
    const old = await browse(own(), 'GET', `${home.origin}/api/v1/me`, { headers: key })
    expect(old?.body._id).toBe(home.users.user)
  })

  test('writes with the cookie of its visitor', async () => {
    const cookie = await cookieOf(home, 'user')
    const me = `${home.origin}/api/me`
    const changed = await browse(own(), 'POST', me, { headers: cookie, body: { firstName: 'Ada' } })
    expect([changed?.status, changed?.body.firstName]).toEqual([200, 'Ada'])
    expect((await browse(own(), 'POST', `${home.origin}/api/logout`, { headers: cookie }))?.status).toBe(200)
  })

  test('may be a program that somebody develops on their machine', async () => {
    const local = 'http://localhost:5173'
    const key = { 'x-api-key': home.tokens.user, tenant: home.id }
    expect((await browse(local, 'GET', `${home.origin}/api/me`, { headers: key }))?.status).toBe(200)
    expect(await browse('http://localhost:5174', 'GET', `${home.origin}/api/me`, { headers: key })).toBeUndefined()
  })

  test('stops being one as soon as the tenant says so', async () => {
    const one = await house()
    const origin = `https://${one.id}.site.example`
    const me = () => browse(origin, 'GET', `${one.origin}/api/me`, { headers: { 'x-api-key': one.tokens.user } })
    expect(await me()).toBeUndefined()
    await one.as('admin').put(APP, { websiteUrls: [origin] })
    expect((await me())?.status).toBe(200)
    await one.as('admin').put(APP, { websiteUrls: [] })
    expect(await me()).toBeUndefined()
  })
})

describe('a page of any other site', () => {
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
    () => own().replace('https', 'http'),
    () => `${own()}:8443`,
    () => `${own()}.evil.example`,
    () => `${own()}/`,
    () => `https://evil-${home.id}.site.example`,
    elsewhere,
  ])('gets nothing, and the answer says that it depends on who asks: %p', async (one) => {
    const origin = typeof one === 'string' ? one : one()
    const key = { 'x-api-key': home.tokens.user }
    for (const answer of [
      await preflight(origin),
      await ask('GET', `${home.origin}/api/me`, { headers: { ...key, origin } }),
      await ask('GET', `${home.origin}/api/none`, { headers: { ...key, origin } }),
      await ask('POST', `${home.origin}/api/me`, { headers: { ...key, origin }, raw: '{' }),
    ]) {
      expect(allowed(answer)).toEqual(NO)
      expect(answer.headers.get('vary')).toContain('Origin')
      expect(answer.headers.get('access-control-allow-methods')).toBeNull()
      expect(answer.headers.get('access-control-expose-headers')).toBeNull()
    }
    const cookie = await cookieOf(home, 'user')
    const write = { ...cookie, origin, 'content-type': 'application/json' }
    expect(refusal(await ask('POST', `${home.origin}/api/me`, { headers: write, raw: '{}' }))).toEqual([
      403,
      'CROSS_SITE',
    ])
  })

  test('gets what is meant for all pages', async () => {
    const editor = home.as('editor')
    await editor.post('/components', { identifier: 'card', content: 'export const a = 1' })
    const [{ js }] = (await home.stranger.get('/static')).body
    for (const origin of ['https://evil.example', own()]) {
      const { headers } = await ask('GET', `${home.origin}${js}`, { headers: { origin } })
      expect([headers.get('access-control-allow-origin'), headers.get('vary')]).toEqual(['*', 'tenant'])
    }
  })
})

describe('a page of the caller’s own machine that is no website', () => {
  const pages = ['http://localhost:5174', 'https://localhost:7443', 'http://127.0.0.1:7080', 'http://[::1]:7000']

  test.each(pages)('%s uses the API by token, and signs in, without cookies', async (origin) => {
    const url = `${home.origin}/api/me`
    const headers = { 'x-api-key': home.tokens.user }
    expect((await browse(origin, 'GET', url, { headers, credentials: false }))?.body._id).toBe(home.users.user)
    const byHeader = { headers: { ...headers, tenant: home.id }, credentials: false }
    expect((await browse(origin, 'GET', 'http://nobody.test/api/me', byHeader))?.status).toBe(200)
    const body = { username: 'nobody', password: 'wrong', authType: 'oauth' }
    const refused = await browse(origin, 'POST', `${home.origin}/api/signin`, { body, credentials: false })
    expect(refused && refusal(refused)).toEqual([401, 'INVALID_CREDENTIALS'])
    const lost = await browse(origin, 'GET', 'http://nobody.test/api/me', { headers, credentials: false })
    expect(lost && refusal(lost)).toEqual([404, 'TENANT_NOT_FOUND'])
  })

  test.each(pages)('%s reads nothing by the cookie of its visitor, and is told so before', async (origin) => {
    const headers = await cookieOf(home, 'user')
    expect(await browse(origin, 'GET', `${home.origin}/api/me`, { headers })).toBeUndefined()
    const answer = await ask('GET', `${home.origin}/api/me`, { headers: { ...headers, origin } })
    expect([answer.status, allowed(answer)]).toEqual([200, NO])
    expect(allowed(await preflight(origin))).toEqual({ origin, credentials: null })
    expect(refusal(await ask('POST', `${home.origin}/api/me`, { headers: { ...headers, origin }, body: {} }))).toEqual([
      403,
      'CROSS_SITE',
    ])
  })

  test('gets no other answer before than after, whichever header it sends', async () => {
    for (const names of [[], ['content-type'], ['tenant', 'x-api-key']])
      for (const origin of [...pages, 'https://evil.example', 'null']) {
        const before = allowed(await preflight(origin, { names }))
        const after = allowed(await ask('GET', `${home.origin}/api/me`, { headers: { origin } }))
        expect([origin, names, before]).toEqual([origin, names, after])
      }
  })
})

describe('what a browser asks before', () => {
  test('is answered for every address alike, without credentials and without work', async () => {
    for (const path of ['/api/me', '/api/blocks/x', '/api/blueprints/x/entities/import', '/api/v1/me', '/api/none']) {
      const answer = await preflight(own(), { url: `${home.origin}${path}` })
      expect([path, answer.status, answer.body, allowed(answer)]).toEqual([path, 204, undefined, YES()])
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

  test('is told from an OPTIONS that asks what an address knows', async () => {
    const plain = await ask('OPTIONS', `${home.origin}/api/blocks/x`, { headers: { origin: own() } })
    expect([plain.status, plain.headers.get('allow'), allowed(plain)]).toEqual([
      204,
      'GET, PUT, PATCH, DELETE, HEAD',
      YES(),
    ])
  })

  test('is judged by the host, for it cannot say which tenant the header will name', async () => {
    const nowhere = 'http://nobody.test/api/me'
    const asked = { url: nowhere, names: ['tenant', 'x-api-key'] }
    // The website of some tenant may ask; what it then asks is judged by the tenant that it names.
    expect(allowed(await preflight(own(), asked))).toEqual(YES())
    expect(allowed(await preflight(own(), { ...asked, names: ['Tenant'] }))).toEqual(YES())
    expect(allowed(await preflight(own(), { ...asked, url: `${abroad.origin}/api/me` }))).toEqual(YES())
    expect(allowed(await preflight('http://localhost:1', asked))).toEqual({
      origin: 'http://localhost:1',
      credentials: null,
    })
    expect(allowed(await preflight('http://localhost:5173', asked)).credentials).toBe('true')
    for (const [origin, names] of [
      ['https://evil.example', ['tenant']],
      [`${own()}:1`, ['tenant']],
      [own(), ['x-tenant']],
      [own(), []],
    ] as const)
      expect(allowed(await preflight(origin, { url: nowhere, names: [...names] }))).toEqual(NO)

    const key = { 'x-api-key': home.tokens.user, tenant: home.id }
    expect((await browse(own(), 'GET', nowhere, { headers: key }))?.status).toBe(200)
    const wrong = { 'x-api-key': abroad.tokens.user, tenant: abroad.id }
    expect(await browse(own(), 'GET', nowhere, { headers: wrong })).toBeUndefined()
  })

  describe('without the header', () => {
    beforeAll(() => {
      config.ATOLL_TENANT_HEADER = 'off'
    })
    afterAll(() => {
      config.ATOLL_TENANT_HEADER = 'on'
    })
    test('is about the host alone', async () => {
      const asked = { url: 'http://nobody.test/api/me', names: ['tenant'] }
      expect(allowed(await preflight(own(), asked))).toEqual(NO)
      expect(allowed(await preflight(own(), { names: ['tenant'] }))).toEqual(YES())
    })
  })
})

test('who is no browser gets nothing of all this', async () => {
  for (const path of ['/api/me', '/api/none', '/api/blocks']) {
    const { headers } = await ask('GET', `${home.origin}${path}`, { headers: { 'x-api-key': home.tokens.user } })
    expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
  }
})

test('a real server answers a real request of a page', async () => {
  const place = { at: emptyFolder(), env: { ATOLL_DATABASE_URL: config.ATOLL_DATABASE_URL } }
  const id = `c${crypto.randomUUID().slice(0, 8)}`
  await makeTenant(place, id)
  await using server = await serve(place)
  const credentials = await signIn(server.url, id)
  const json = { 'content-type': 'application/json' }
  const origin = `https://${id}.example`
  const set = { method: 'PUT', headers: { ...json, ...credentials }, body: JSON.stringify({ websiteUrls: [origin] }) }
  expect((await fetch(`${server.url}/api${APP}`, set)).status).toBe(200)
  const asked = {
    origin,
    'access-control-request-method': 'GET',
    'access-control-request-headers': 'authorization,tenant',
  }
  const first = await fetch(`${server.url}/api/me`, { method: 'OPTIONS', headers: asked })
  expect([first.status, first.headers.get('access-control-allow-origin')]).toEqual([204, origin])
  const second = await fetch(`${server.url}/api/me`, { headers: { ...credentials, origin } })
  expect([second.status, second.headers.get('access-control-allow-origin')]).toEqual([200, origin])
  expect(second.headers.get('vary')).toEndWith('Origin')
})
