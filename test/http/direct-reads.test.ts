import { describe, expect, spyOn, test } from 'bun:test'
import { createDirectReadFinder, readDirectly } from '../../src/accounts/direct-reads'
import { app } from '../../src/app'
import { handleRequest } from '../../src/gateway'
import { requestStatistics } from '../../src/operations/metrics/request-statistics'
import { bearer, signInForCookie, signInForTokens } from '../accounts/session-fixtures'
import { createTestTenant, fullAccessRules, withoutRateLimits } from '../test-tenant'

const home = await createTestTenant()
const elsewhere = await createTestTenant()
const admin = home.as('admin')
const fields = [
  { key: 'title', type: 'string' },
  { key: 'price', type: 'integer' },
  { key: 'secret', type: 'string', readRoles: ['boss'] },
  { key: 'parent', type: 'relation', target: 'todos' },
]
await admin.post('/blueprints', { key: 'todos', name: 'To-dos', fields, permissions: fullAccessRules('user', 'user') })
const guest = [{ operation: 'read', scope: 'tenant', guest: true }]
await admin.post('/blueprints', { key: 'news', name: 'News', fields, permissions: guest })
await admin.post('/blueprints', { key: 'drafts', name: 'Drafts', fields, permissions: [] })
await admin.put('/configurations/app-configuration', { metadata: { websiteUrls: ['https://shop.example'] } })

const create = async (key: string, input: object) =>
  (await home.as('user').post(`/blueprints/${key}/entities`, input)).body
const own = await create('todos', { title: 'Größe', price: 3, secret: 'x' })
const child = await create('todos', { title: 'b', price: 4, parent: own._id })
await create('todos', { title: 'c', identifier: 'a name' })
await create('todos', { title: 'd', identifier: 'a/b' })
const { body: foreign } = await admin.post('/blueprints/todos/entities', { title: 'of the admin' })
const { body: news } = await admin.post('/blueprints/news/entities', { title: 'news' })

const etag = (await home.as('user').get(`/blueprints/todos/entities/${own._id}`)).headers.get('etag')!

const issueScoped = async (...scopes: string[]) => {
  const { body } = await home.anonymous
    .with(await signInForCookie(home, 'user'))
    .post('/me/api-tokens', { nickname: 'x', scopes })
  return { 'x-api-key': body.token as string }
}
const { token } = await signInForTokens(home, 'user')
const ended = await signInForCookie(home, 'other')
await home.anonymous.post('/logout', {}, ended)

const callers: Record<string, Record<string, string>> = {
  'a guest': {},
  'a user with an API token': { 'x-api-key': home.tokens.user },
  'a user with an access token': bearer(token),
  'a user with a cookie': await signInForCookie(home, 'user'),
  'another user': { 'x-api-key': home.tokens.other },
  'an admin': { 'x-api-key': home.tokens.admin },
  'an admin who impersonates a user': { 'x-api-key': home.tokens.admin, 'x-impersonate-user': home.users.user },
  'an admin who impersonates nobody': { 'x-api-key': home.tokens.admin, 'x-impersonate-user': 'x' },
  'a user who impersonates': { 'x-api-key': home.tokens.user, 'x-impersonate-user': home.users.other },
  'a token that may read entities': await issueScoped('entities:read'),
  'a token that may read files': await issueScoped('files:read'),
  'an ended session': ended,
  'an invalid API token': { 'x-api-key': 'x' },
  'an invalid access token': bearer('x.y.z'),
  'a token of another tenant': { 'x-api-key': elsewhere.tokens.user },
}

type Asked = { path: string; method?: string; headers?: Record<string, string>; scheme?: string }
const todos = '/api/blueprints/todos/entities'
const requests: Asked[] = [
  ...[
    '',
    '/',
    `/${own.identifier}`,
    `/${own._id}`,
    `/${own._id}/`,
    `/${foreign._id}`,
    '/nothing',
    '/a%20name',
    '/a%2Fb',
  ],
  ...['/%zz', '/%ff', '/a%00b', '/%C3%A9', '//', `/${own._id}/history`, '/export', `/${own._id}?flat=true`],
  ...[
    `/${own._id}?$select=title`,
    `/${own._id}?bypassAdmin=true`,
    `/${own._id}?$asOf=2026-01-01`,
    `/${own._id}?$select=`,
  ],
  ...[`/${child._id}?$populate=parent`, '?$populate=parent&$sort=title', '?title=Gr%C3%B6%C3%9Fe', '?title=Gr%F6%DFe'],
  ...['?$limit=1', '?$limit=2000', '?$limit=x', '?price[$gt]=3&$count=true', '?$sort=-price&$skip=1', '?$after=x'],
  ...['?$explain=maybe', '?nothing=1', '?$sort=secret', '?secret=x', '?bypassAdmin=true', '?title=%zz'],
].map((rest) => ({ path: `${todos}${rest}` }))
requests.push(
  { path: `${todos.replace('/api', '/api/v1')}/${own._id}` },
  { path: `${todos.replace('/api', '/api/v1')}?$limit=1` },
  { path: `/api/v1x/blueprints/todos/entities` },
  { path: `/api/blueprints/news/entities/${news._id}` },
  { path: '/api/blueprints/news/entities' },
  { path: '/api/blueprints/drafts/entities' },
  { path: '/api/blueprints/drafts/entities/x' },
  { path: '/api/blueprints/nothing/entities/x' },
  { path: `/api/blueprints/operator/entities/operator/` },
)
for (const path of [todos, `${todos}/${own._id}`]) {
  for (const method of ['HEAD', 'OPTIONS', 'TRACE', 'PURGE']) requests.push({ path, method })
  const variants: Record<string, string>[] = [
    { 'accept-version': 'v1' },
    { 'accept-version': 'v2' },
    { 'if-none-match': etag },
    { 'if-none-match': '"0-0"' },
    { origin: 'https://shop.example' },
    { origin: 'https://elsewhere.example' },
    { origin: 'http://localhost:3000' },
    { tenant: elsewhere.id },
    { tenant: 'nothing' },
    { host: 'nowhere.test' },
    { 'x-forwarded-proto': 'https' },
    { 'x-request-id': 'no valid id' },
    { 'idempotency-key': 'x' },
    { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
    { cookie: 'a=b' },
  ]
  for (const headers of variants) requests.push({ path, headers })
  requests.push({ path, scheme: 'https' })
}

type Way = { areReadsDirect: boolean }

async function send(
  { path, method = 'GET', headers, scheme = 'http' }: Asked,
  caller: Record<string, string>,
  way: Way,
) {
  const { host } = new URL(home.origin)
  const request = new Request(`${scheme}://${host}${path}`, {
    method,
    headers: { host, 'x-request-id': 'one', ...caller, ...headers },
  })
  const response = await handleRequest(request, way)
  const sent = Object.fromEntries(response.headers)
  // Cursors are encrypted, each time differently, and ids are numbered where the caller sends no valid one.
  if (sent.link) sent.link = sent.link.replace(/after=[\w-]+/, 'after=…')
  if (headers?.['x-request-id']) sent['x-request-id'] = sent['x-request-id']!.replace(/[\w-]+/, '…')
  return { status: response.status, headers: sent, body: await response.text() }
}

const countRequests = () =>
  Object.fromEntries(
    [...requestStatistics].flatMap(([route, methods]) =>
      [...methods].flatMap(([method, { statuses }]) =>
        [...statuses].map(([status, count]) => [`${method} ${route} ${status}`, count]),
      ),
    ),
  )
const subtract = (after: Record<string, number>, before: Record<string, number>) =>
  Object.fromEntries(
    Object.entries(after)
      .map(([name, count]) => [name, count - (before[name] ?? 0)] as const)
      .filter(([, count]) => count),
  )

describe.each(Object.entries(callers))('%s', (_, caller) => {
  test('gets the same answers, and is counted alike, whether the gateway or Elysia answers', async () => {
    using _ = withoutRateLimits()
    const before = countRequests()
    const byElysia = []
    for (const request of requests) byElysia.push(await send(request, caller, { areReadsDirect: false }))
    const between = countRequests()
    for (const [n, request] of requests.entries())
      expect([request, await send(request, caller, { areReadsDirect: true })]).toEqual([request, byElysia[n]!])
    expect(subtract(countRequests(), between)).toEqual(subtract(between, before))
  })
})

test('each caller gets the status of an entity that their permissions allow', async () => {
  using _ = withoutRateLimits()
  const statuses: Record<string, number> = {}
  for (const [name, caller] of Object.entries(callers))
    statuses[name] = (await send({ path: `${todos}/${own._id}` }, caller, { areReadsDirect: true })).status
  expect(statuses).toEqual({
    'a guest': 401,
    'a user with an API token': 200,
    'a user with an access token': 200,
    'a user with a cookie': 200,
    'another user': 404,
    'an admin': 200,
    'an admin who impersonates a user': 200,
    'an admin who impersonates nobody': 404,
    'a user who impersonates': 403,
    'a token that may read entities': 200,
    'a token that may read files': 403,
    'an ended session': 401,
    'an invalid API token': 401,
    'an invalid access token': 401,
    'a token of another tenant': 401,
  })
})

test('reads of an entity and of a list bypass Elysia, and a read of the own account does not', async () => {
  const fetched = spyOn(app, 'fetch')
  const asked = async (path: string) => {
    fetched.mockClear()
    expect((await send({ path }, callers['a user with an API token']!, { areReadsDirect: true })).status).toBe(200)
    return fetched.mock.calls.length
  }
  try {
    for (const path of [todos, `${todos}/${own._id}`, `${todos.replace('/api', '/api/v1')}?title=Gr%C3%B6%C3%9Fe`])
      expect([path, await asked(path)]).toEqual([path, 0])
    expect(await asked('/api/me')).toBe(1)
  } finally {
    fetched.mockRestore()
  }
})

test('a read is refused as soon as its credential expires or its rule is removed', async () => {
  const own = await createTestTenant()
  const things = { key: 'things', name: 'Things', fields: [], permissions: fullAccessRules('tenant', 'user') }
  await own.as('admin').post('/blueprints', things)
  const path = '/blueprints/things/entities'
  const { body } = await own.as('user').post(path, {})
  const read = async (headers: Record<string, string>) => [
    (await own.anonymous.get(path, headers)).status,
    (await own.anonymous.get(`${path}/${body._id}`, headers)).status,
  ]
  const cookie = await signInForCookie(own, 'user')
  const session = await signInForTokens(own, 'user')
  const { body: issued } = await own.anonymous.with(cookie).post('/me/api-tokens', { nickname: 'x' })
  const credentials = [cookie, bearer(session.token), { 'x-api-key': issued.token as string }]
  for (const headers of credentials) expect(await read(headers)).toEqual([200, 200])

  expect((await own.anonymous.with(cookie).delete(`/me/api-tokens/${issued.apiToken._id}`)).status).toBe(200)
  expect(await read({ 'x-api-key': issued.token })).toEqual([401, 401])
  await own.anonymous.with(bearer(session.token)).post('/logout', {})
  expect(await read(bearer(session.token))).toEqual([401, 401])
  await own.as('admin').put('/blueprints/things', { permissions: fullAccessRules('tenant', 'boss') })
  expect(await read(cookie)).toEqual([403, 403])
  await own.anonymous.with(cookie).post('/logout', {})
  expect(await read(cookie)).toEqual([401, 401])
})

test('direct reads and reads by Elysia share a rate limit, and get the same 429', async () => {
  const limited = await createTestTenant()
  await limited.as('admin').put('/configurations/limits-configuration', { metadata: { guests: { reads: 4 } } })
  const url = `${limited.origin}/api/blueprints/todos/entities`
  const read = async (areReadsDirect: boolean) => {
    const headers = { host: new URL(url).host }
    const response = await handleRequest(new Request(url, { headers }), { areReadsDirect })
    const { code } = (await response.json()) as { code: string }
    return [response.status, code, response.headers.get('ratelimit-remaining'), response.headers.has('retry-after')]
  }
  const missing = (left: string) => [404, 'BLUEPRINT_NOT_FOUND', left, false]
  expect(await read(true)).toEqual(missing('3'))
  expect(await read(false)).toEqual(missing('2'))
  expect(await read(true)).toEqual(missing('1'))
  expect(await read(false)).toEqual(missing('0'))
  const refused = [429, 'RATE_LIMITED', '0', true]
  expect(await read(true)).toEqual(refused)
  expect(await read(false)).toEqual(refused)
})

test('the direct read finder and the router find the same route and parameters, with and without a cached collection', () => {
  const findRead = createDirectReadFinder(app)
  const names = [
    'one',
    'two',
    'export',
    'exports',
    'changes',
    'import',
    'a%20name',
    'a%2Fb',
    ':identifier',
    'ü',
    '..',
    '',
  ]
  const collections = [todos, '/api/blueprints/a%20b/entities', '/api/blueprints/:key/entities', '/api/files', '/api']
  for (const collection of collections)
    for (const name of [...names, ...names.reverse(), 'one/history', 'one/']) {
      const path = `${collection}/${name}`
      const found = findRead(path)
      const routed = app.router.http.find('GET', path)
      const isDirect = routed?.store === app.router.http.find('GET', `${todos}/x`)?.store
      const isList = routed?.store === app.router.http.find('GET', todos)?.store
      expect([path, found?.params]).toEqual([path, isDirect || isList ? routed!.params : undefined])
      if (found) expect(found.direct.route).toEndWith(isList ? '/entities/' : '/:identifier')
    }
})

test('a direct read without a guard, or with parameters that are validated, is refused when the server starts', async () => {
  const { Elysia, t } = await import('elysia')
  const read = readDirectly(() => new Response('read'))
  // biome-ignore lint/suspicious/noExplicitAny: a route without a guard has no context
  const open = new Elysia().get('/open/:id', read as any)
  expect(() => createDirectReadFinder(open)).toThrow('/open/:id cannot be read directly.')
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const validated = new Elysia().get('/validated', read as any, { query: t.Object({}) })
  expect(() => createDirectReadFinder(validated)).toThrow('/validated cannot be read directly.')
})
