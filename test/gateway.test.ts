import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { app } from '../src/app'
import { config } from '../src/config'
import {
  apiCaller,
  createTempFolder,
  createTenantByCli,
  parseStatus,
  type RunningAtoll,
  runAtoll,
  sendRaw,
  signIn,
  startAtoll,
} from './fakes/cli'
import { type ApiClient, callApi, createTestTenant, statusAndCode } from './test-tenant'

setDefaultTimeout(30_000)

let t: Awaited<ReturnType<typeof createTestTenant>>
let admin: ApiClient
beforeAll(async () => {
  t = await createTestTenant()
  admin = t.as('admin')
  const things = { key: 'things', name: 'Things', fields: [{ key: 'name', type: 'string' }] }
  expect((await admin.post('/blueprints', things)).status).toBe(201)
})

const source = (metadata: object) => ({ name: 'Stock', kind: 'http', metadata })

describe('headers of every answer', () => {
  test.each(['/health', '/openapi/json', '/api/me', '/nowhere', '/api/nowhere'])(
    'GET %s answers with a version, a request id, a content type and the security headers',
    async (path) => {
      const { headers } = await callApi('GET', `${t.origin}${path}`)
      expect(headers.get('x-api-version')).toBe('v1')
      expect(headers.get('x-request-id')).toMatch(/^[\w.:-]{8,64}$/)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('x-frame-options')).toBe('DENY')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('content-type')).toBeTruthy()
    },
  )

  test('answers of the API are private in Cache-Control and vary by tenant and credential', async () => {
    await admin.post('/blueprints/things/entities', { identifier: 'kept', name: 'Kept' })
    const entity = '/blueprints/things/entities/kept'
    const entities = '/blueprints/things/entities'
    for (const [path, cacheControl] of [
      ['/me', 'private, no-store'],
      ['/users', 'private, no-store'],
      ['/nowhere', 'private, no-store'],
      ['/blueprints/none', 'private, no-store'],
      ['/blueprints/things', 'private, no-cache'],
      [entity, 'private, no-cache'],
      [entities, 'private, no-cache'],
      [`${entities}?$flat=false`, 'private, no-cache'],
      [`${entities}/none`, 'private, no-store'],
    ] as const) {
      const { headers } = await admin.get(path)
      expect([path, headers.get('cache-control')]).toEqual([path, cacheControl])
      const vary = headers.get('vary')?.split(', ') ?? []
      for (const name of ['tenant', 'Authorization', 'Cookie', 'x-api-key', 'x-impersonate-user'])
        expect(
          vary.filter((one) => one === name),
          path,
        ).toEqual([name])
    }
    const { headers } = await admin.get(entity)
    const notModified = await admin.get(entity, { 'if-none-match': headers.get('etag') ?? '' })
    expect([notModified.status, notModified.headers.get('cache-control')]).toEqual([304, 'private, no-cache'])
    expect(notModified.headers.get('vary')).toBe(headers.get('vary'))
    expect((await callApi('GET', `${t.origin}/health`)).headers.get('cache-control')).toBeNull()
  })

  test('JSON answers have a Content-Security-Policy that forbids everything, and pages have their own', async () => {
    const policy = async (path: string) =>
      (await callApi('GET', `${t.origin}${path}`, { headers: { 'x-api-key': t.tokens.admin } })).headers.get(
        'content-security-policy',
      )
    const strict = "default-src 'none'; frame-ancestors 'none'"
    for (const path of ['/api/me', '/api/nowhere', '/health', '/openapi/json', '/api/blueprints/things/entities'])
      expect([path, await policy(path)]).toEqual([path, strict])
    expect(await policy('/openapi')).toContain("script-src 'self'")
    await t.as('editor').post('/components', { identifier: 'card', content: 'export const a = 1' })
    const [{ js }] = (await t.anonymous.get('/static')).body
    expect(await policy(js)).toBe("default-src 'none'; sandbox")
  })

  test('answers over https have Strict-Transport-Security, and answers over http do not', async () => {
    const strict = async (url: string) => (await callApi('GET', url)).headers.get('strict-transport-security')
    for (const path of ['/api/me', '/health', '/api/nowhere']) {
      expect(await strict(`https://${t.id}.test${path}`)).toBe('max-age=31536000')
      expect(await strict(`${t.origin}${path}`)).toBeNull()
    }
  })

  test('an answer repeats a valid X-Request-Id of the caller and replaces an invalid one', async () => {
    const requestIdFor = async (id: string) =>
      (await admin.get('/me', { 'x-request-id': id })).headers.get('x-request-id') as string
    for (const id of ['a', 'A.b:c_d-9', 'x'.repeat(64)]) expect(await requestIdFor(id)).toBe(id)
    for (const id of ['', 'a b', 'x'.repeat(65), 'ä', '<script>', '"']) expect(await requestIdFor(id)).not.toBe(id)
  })

  test('answers without a request id of the caller get unique ones', async () => {
    const ids = await Promise.all(
      Array.from({ length: 20 }, async () => (await admin.get('/me')).headers.get('x-request-id')),
    )
    expect(new Set(ids).size).toBe(20)
  })

  test('every refusal is JSON with a code and a sentence', async () => {
    for (const { status, headers, body } of [
      await callApi('GET', `${t.origin}/nowhere`),
      await t.anonymous.get('/me'),
      await callApi('GET', 'http://nobody.test/api/me'),
      await admin.get('/blueprints/none'),
      await callApi('DELETE', `${t.origin}/health`),
      await admin.get('/me', { 'accept-version': 'v2' }),
    ]) {
      expect(status).toBeGreaterThanOrEqual(400)
      expect(headers.get('content-type')).toStartWith('application/json')
      expect(body).toMatchObject({
        code: expect.stringMatching(/^[A-Z][A-Z_]+$/),
        message: expect.stringMatching(/^[A-Z].*\.$/s),
      })
    }
  })
})

describe('versions of the API', () => {
  test('/api/v1 answers every path, query and body as /api does', async () => {
    const v1 = (method: string, path: string, body?: unknown) =>
      callApi(method, `${t.origin}/api/v1${path}`, { headers: { 'x-api-key': t.tokens.admin }, body })
    expect((await v1('GET', '/me')).body).toEqual((await admin.get('/me')).body)
    const made = await v1('POST', '/blueprints/things/entities', { identifier: 'one', name: 'One' })
    expect([made.status, made.body.name]).toEqual([201, 'One'])
    const changed = await v1('PUT', '/blueprints/things/entities/one', { name: 'Eins' })
    expect([changed.status, changed.body.name]).toEqual([200, 'Eins'])
    const found = await v1('GET', '/blueprints/things/entities?name=Eins&$select=name')
    expect(found.body).toMatchObject([{ identifier: 'one', name: 'Eins' }])
    expect((await v1('GET', '/blueprints/things/entities?name=One')).body).toEqual([])
    expect((await v1('DELETE', '/blueprints/things/entities/one')).status).toBe(200)
    expect(statusAndCode(await v1('GET', '/nowhere'))).toEqual([404, 'ROUTE_NOT_FOUND'])
    expect(statusAndCode(await v1('PATCH', '/signin'))).toEqual([405, 'METHOD_NOT_ALLOWED'])
  })

  test('a path that resembles /api/v1 answers 404 ROUTE_NOT_FOUND', async () => {
    for (const path of [
      '/api/v10/me',
      '/api/v1me',
      '/api/v2/me',
      '/v1/api/me',
      '/api/v1/v1/me',
      '/health/v1',
      '/API/me',
    ])
      expect(statusAndCode(await callApi('GET', `${t.origin}${path}`)), path).toEqual([404, 'ROUTE_NOT_FOUND'])
    expect(statusAndCode(await callApi('GET', `${t.origin}/api/v1`))).toEqual([404, 'ROUTE_NOT_FOUND'])
    expect(statusAndCode(await callApi('GET', `${t.origin}/api/v1?x=/me`))).toEqual([404, 'ROUTE_NOT_FOUND'])
  })

  test('Accept-Version accepts v1 in any case, and others are refused with 400 UNSUPPORTED_VERSION', async () => {
    for (const version of ['v1', 'V1', ' v1 ', ''])
      expect((await admin.get('/me', { 'accept-version': version })).status).toBe(200)
    for (const version of ['v2', '1', 'v1.0', 'v1, v2', 'latest', '*']) {
      const answer = await admin.get('/me', { 'accept-version': version })
      expect(statusAndCode(answer), version).toEqual([400, 'UNSUPPORTED_VERSION'])
      expect(answer.headers.get('x-api-version')).toBe('v1')
    }
  })
})

describe('paths and methods', () => {
  test('an unknown path answers every method with 404 ROUTE_NOT_FOUND', async () => {
    for (const path of [
      '/nowhere',
      '/api',
      '/api/',
      '/api/nowhere',
      '/api/me/nowhere',
      '/health/x',
      '/api/blueprints/a/b',
    ])
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
        expect(statusAndCode(await callApi(method, `${t.origin}${path}`)), `${method} ${path}`).toEqual([
          404,
          'ROUTE_NOT_FOUND',
        ])
  })

  const allowed = (headers: Headers) => (headers.get('allow') ?? '').split(', ').sort().join()

  test.each([
    ['/api/coupons/validate', 'POST'],
    ['/api/blueprints/client.ts', 'GET,HEAD'],
    ['/api/blueprints/x/entities/all', 'DELETE'],
    ['/api/blueprints/x/entities/batch', 'POST'],
    ['/api/plans/public', 'GET,HEAD'],
    ['/api/configurations/app-configuration', 'GET,HEAD,PATCH,PUT'],
    ['/api/integration-sources/status', 'POST'],
    ['/api/me/passkeys/options', 'POST'],
  ])('OPTIONS %s lists only the methods of that path', async (path, methods) => {
    const { status, headers } = await callApi('OPTIONS', `${t.origin}${path}`)
    expect([status, allowed(headers)]).toEqual([204, methods])
  })

  test('GET of a fixed path that only accepts POST falls back to the path with a parameter', async () => {
    const { status, body } = await t.as('admin').get('/coupons/validate')
    expect([status, body.code]).toEqual([404, 'COUPON_NOT_FOUND'])
  })

  test('a known path with another method answers 405 METHOD_NOT_ALLOWED and the allowed methods', async () => {
    const cases: [string, string, string][] = [
      ['DELETE', '/health', 'GET,HEAD'],
      ['GET', '/api/signin', 'POST'],
      ['HEAD', '/api/signin', 'POST'],
      ['PUT', '/api/me', 'GET,HEAD,POST'],
      ['DELETE', '/api/blueprints', 'GET,HEAD,POST'],
      ['POST', '/api/blueprints/x', 'DELETE,GET,HEAD,PATCH,PUT'],
      ['POST', '/api/blueprints/x/entities/y', 'DELETE,GET,HEAD,PATCH,PUT'],
      ['POST', '/openapi', 'GET,HEAD'],
    ]
    for (const [method, path, methods] of cases)
      for (const requested of [path, path.replace(/^\/api/, '/api/v1')]) {
        const { status, body, headers } = await callApi(method, `${t.origin}${requested}`)
        expect([status, allowed(headers)], `${method} ${requested}`).toEqual([405, methods])
        if (method !== 'HEAD') expect(body.code).toBe('METHOD_NOT_ALLOWED')
      }
  })

  test('an unknown blueprint, entity or session answers 404 with a code of that resource', async () => {
    expect(statusAndCode(await admin.get('/blueprints/none'))).toEqual([404, 'BLUEPRINT_NOT_FOUND'])
    expect(statusAndCode(await admin.get('/blueprints/things/entities/none'))).toEqual([404, 'ENTITY_NOT_FOUND'])
    expect(statusAndCode(await admin.delete('/me/sessions/none'))).toEqual([404, 'SESSION_NOT_FOUND'])
  })

  test('a malformed id answers 404 with a code of that resource', async () => {
    for (const id of ['%00', '%ff', '%', '..%2f..', 'a%20b', '%F0%9F%8F%9D', "'", 'x'.repeat(5_000)]) {
      const { status, body } = await admin.get(`/blueprints/things/entities/${id}`)
      expect([status, body.code], id).toEqual([404, 'ENTITY_NOT_FOUND'])
    }
    for (const key of ['%00', '%ff', 'constructor', '__proto__'])
      expect(statusAndCode(await admin.get(`/blueprints/${key}/entities`)), key).toEqual([404, 'BLUEPRINT_NOT_FOUND'])
  })

  test('OPTIONS lists the methods of a path, and HEAD answers the headers of GET without a body', async () => {
    const options = await callApi('OPTIONS', `${t.origin}/api/blueprints/x`)
    expect([options.status, allowed(options.headers), options.body]).toEqual([
      204,
      'DELETE,GET,HEAD,PATCH,PUT',
      undefined,
    ])
    const head = (path: string, headers = {}) => callApi('HEAD', `${t.origin}${path}`, { headers })
    const key = { 'x-api-key': t.tokens.admin }
    const paths = ['/health', '/openapi', '/openapi/json', '/api/me', '/api/blueprints/things/entities']
    for (const path of paths) {
      const get = await callApi('GET', `${t.origin}${path}`, { headers: key })
      const { status, body, headers } = await head(path, key)
      expect([status, body, headers.get('content-type')], path).toEqual([
        200,
        undefined,
        get.headers.get('content-type'),
      ])
    }
    expect([(await head('/api/me')).status, (await head('/nowhere')).status]).toEqual([401, 404])
  })
})

describe('bodies', () => {
  const put = (raw: string, headers: Record<string, string>) =>
    callApi('POST', `${t.origin}/api/me`, { headers: { 'x-api-key': t.tokens.admin, ...headers }, raw })

  test('a body with a JSON media type is accepted, and others are refused with 415 UNSUPPORTED_MEDIA_TYPE', async () => {
    for (const type of ['application/json', 'Application/Json;charset=utf-8', 'application/merge-patch+json'])
      expect((await put('{"firstName":"A"}', { 'content-type': type })).body.firstName).toBe('A')
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'image/png',
    ])
      expect(statusAndCode(await put('{"firstName":"B"}', { 'content-type': type })), type).toEqual([
        415,
        'UNSUPPORTED_MEDIA_TYPE',
      ])
    expect((await admin.get('/me')).body.firstName).toBe('A')
  })

  test('a body without a content type is refused with 415 UNSUPPORTED_MEDIA_TYPE', async () => {
    const body = new TextEncoder().encode('{"firstName":"B"}')
    const headers = { 'x-api-key': t.tokens.admin }
    const answer = await callApi('POST', `${t.origin}/api/me`, { headers, raw: body })
    expect(statusAndCode(answer)).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
  })

  test('a body of invalid JSON is refused with 400 MALFORMED_BODY', async () => {
    for (const raw of ['{', '{"a":1,}', 'firstName=B', '\0'])
      expect(statusAndCode(await put(raw, { 'content-type': 'application/json' }))).toEqual([400, 'MALFORMED_BODY'])
  })

  test('an empty body counts as no body for every content type', async () => {
    const key = { 'x-api-key': t.tokens.editor }
    for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x', undefined]) {
      const headers: Record<string, string> = type ? { ...key, 'content-type': type } : key
      const refreshed = await callApi('POST', `${t.origin}/api/token/refresh`, { headers, raw: '' })
      expect([refreshed.status, type]).toEqual([401, type]) // no token, and not 400 or 415
      expect(statusAndCode(await callApi('POST', `${t.origin}/api/me`, { headers }))).toEqual([400, 'INVALID_INPUT'])
    }
    const made = await callApi('POST', `${t.origin}/api/signin`, {
      headers: { 'content-type': 'application/json' },
      raw: '',
    })
    expect(statusAndCode(made)).toEqual([400, 'INVALID_INPUT'])
  })

  test('an object that cannot be converted to text is refused with 400 INVALID_INPUT where it does not fit', async () => {
    const hollow = { toString: null, valueOf: 1 }
    for (const body of [{ username: hollow }, { username: [[hollow]] }, hollow, [hollow]])
      expect(statusAndCode(await admin.post('/me', body))).toEqual([400, 'INVALID_INPUT'])
    expect((await admin.post('/me', { metadata: { hollow } })).body.metadata).toEqual({ hollow })
  })

  test('400 INVALID_INPUT lists the path and message of every error', async () => {
    const { status, body } = await admin.post('/blueprints', { key: 'X', fields: 'none' })
    expect([status, body.code]).toEqual([400, 'INVALID_INPUT'])
    const paths = body.details.map(({ path }: { path: string }) => path)
    for (const path of ['/key', '/name', '/fields']) expect(paths).toContain(path)
    expect(body.details).toEqual([
      { path: '/name', message: 'name is required.' },
      {
        path: '/key',
        message:
          'Begin the key with a lower-case letter, and use only lower-case letters, digits, _ and - (63 characters at most).',
      },
      { path: '/fields', message: 'fields must be a list.' },
    ])
    expect(body.message).toBe('name is required. 2 other problems are listed in the details.')
  })

  test.each<[string, string, unknown, string, string]>([
    ['an unknown word', '/integrations', { trigger: { kind: 'x' } }, '/trigger/kind', 'Use one of: webhook, event'],
    [
      'an invalid nullable value',
      '/plugins',
      { apiPath: 'Upper' },
      '/apiPath',
      'Begin apiPath with a lower-case letter',
    ],
    ['an invalid optional value', '/lambdas/x/execute', { path: 5 }, '/path', 'path must be text.'],
    [
      ...([
        'a value of none of several types',
        '/blueprints',
        { limitations: [{ value: [] }] },
        '/limitations/0/value',
      ] as const),
      'limitations[0].value must be a whole number from 0 to 1000000 or an object.',
    ],
    ['a list in place of an object', '/me', { metadata: [] }, '/metadata', 'metadata must be an object.'],
    [
      'a value that its kind requires',
      '/integration-sources',
      source({ url: 'x' }),
      '/metadata/url',
      'begins with https://',
    ],
    ['an empty body', '/me', undefined, '', 'Send a JSON object.'],
    ['a list as the body', '/me', [], '', 'Send a JSON object.'],
    ['an invalid e-mail address', '/me', { email: 'nope' }, '/email', 'This is not an e-mail address.'],
    ['an invalid date', '/me', { birthDate: '01/02/1990' }, '/birthDate', 'Write the date as YYYY-MM-DD.'],
    ['a reserved field key', '/blueprints', { fields: [{ key: '_id' }] }, '/fields/0/key', '_ belong to the system.'],
    ['a wrong literal', '/signin', { authType: 'jwt' }, '/authType', 'authType must be oauth or omitted.'],
    ['a missing value', '/me/api-tokens', { name: 'x' }, '/nickname', 'nickname is required.'],
    [
      'a number out of range',
      '/ai/agents',
      { temperature: 3 },
      '/temperature',
      'temperature must be a number from 0 to 2.',
    ],
    [
      'a fraction in place of an integer',
      '/ai/agents',
      { max_tokens: 1.5 },
      '/max_tokens',
      'must be a whole number from 1 to 1000000.',
    ],
    [
      'an invalid time',
      '/me/api-tokens',
      { nickname: 'x', expiresAt: 'soon' },
      '/expiresAt',
      'Write the time as 2030-01-31T',
    ],
    [
      'a text that is too long',
      '/blocks',
      { name: 'x'.repeat(201), content: '' },
      '/name',
      'name must have at most 200 characters.',
    ],
    ['an empty text', '/workspaces', { name: '' }, '/name', 'name must not be empty.'],
    [
      'a list that is too long',
      '/workspaces',
      { labels: Array(101).fill('x') },
      '/labels',
      'labels must have at most 100 items.',
    ],
  ])('%s is refused with 400 INVALID_INPUT, its path and a sentence', async (_, at, sent, path, words) => {
    const { status, body } = await admin.post(at, sent)
    expect([status, body.code, body.message.at(-1)]).toEqual([400, 'INVALID_INPUT', '.'])
    const messages = body.details.filter((flaw: { path: string }) => flaw.path === path)
    expect(messages.map(({ message }: { message: string }) => message).join()).toContain(words)
  })
})

describe('bodies over a real connection', () => {
  const at = { at: createTempFolder() }
  let server: RunningAtoll
  let head: string
  const to = (path: string) => head.replace('/api/me', path)
  beforeAll(async () => {
    await createTenantByCli(at, 'acme')
    server = await startAtoll(at)
    const { authorization } = await signIn(server.url, 'acme')
    const headers = `Host: acme.test\r\nAuthorization: ${authorization}\r\nConnection: close\r\n`
    head = `POST /api/me HTTP/1.1\r\n${headers}Content-Type: application/json\r\n`
  })
  afterAll(() => server?.end('SIGKILL'))

  const LIMIT = 1 << 20
  const chunk = (size: number) => `${size.toString(16)}\r\n${' '.repeat(size)}\r\n`
  const parts = (size: number) => Array.from({ length: size / 65_536 }, () => chunk(65_536))

  test('a body with Content-Length is accepted up to the limit and refused beyond it with 413 BODY_TOO_LARGE', async () => {
    const fitting = '{"firstName":"Fit"}'.padEnd(LIMIT)
    expect(parseStatus(await sendRaw(server.port, [`${head}Content-Length: ${LIMIT}\r\n\r\n`, fitting]))).toBe(200)
    const answer = await sendRaw(server.port, [`${head}Content-Length: ${LIMIT + 1}\r\n\r\n{`])
    expect(parseStatus(answer)).toBe(413)
    expect(answer).toContain('"code":"BODY_TOO_LARGE"')
  })

  test('a body with a Content-Length of gigabytes is refused with 413 before it is received', async () => {
    for (const length of ['5000000000', '9007199254740991'])
      expect(parseStatus(await sendRaw(server.port, [`${head}Content-Length: ${length}\r\n\r\n`, '{'])), length).toBe(
        413,
      )
  })

  test('an invalid Content-Length is refused with 400 or 413', async () => {
    for (const length of ['-1', 'x', '1e3', '0x10', '99999999999999999999999'])
      expect(parseStatus(await sendRaw(server.port, [`${head}Content-Length: ${length}\r\n\r\n{}`])), length).toBeOneOf(
        [400, 413],
      )
  })

  test('a chunked body is accepted up to the limit and refused beyond it with 413 BODY_TOO_LARGE', async () => {
    const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n`
    const body = '13\r\n{"firstName":"Cut"}\r\n'
    const accepted = await sendRaw(server.port, [chunked, body, ...parts(LIMIT - 65_536), '0\r\n\r\n'])
    expect(parseStatus(accepted)).toBe(200)
    expect(accepted).toContain('"firstName":"Cut"')
    const refused = await sendRaw(server.port, [chunked, body, ...parts(LIMIT), '0\r\n\r\n'])
    expect(parseStatus(refused)).toBe(413)
    expect(refused).toContain('"code":"BODY_TOO_LARGE"')
  })

  test.each(['/api/me', '/api/v1/me'])(
    '%s refuses an endless body with 413 as soon as it is too large',
    async (path) => {
      const chunked = `${to(path)}Transfer-Encoding: chunked\r\n\r\n`
      expect(parseStatus(await sendRaw(server.port, [chunked, ...parts(LIMIT + 65_536)]))).toBe(413)
    },
  )

  test('a request with both Content-Length and chunks is refused with 400', async () => {
    const both = `${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n`
    expect(parseStatus(await sendRaw(server.port, [both, '2\r\n{}\r\n0\r\n\r\n']))).toBe(400)
  })

  test('an anonymous request is refused with 401 before its body is received', async () => {
    const request = `POST /api/me HTTP/1.1\r\nHost: acme.test\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`
    expect(parseStatus(await sendRaw(server.port, [request], 1_000))).toBe(401)
  })

  test('ATOLL_BODY_LIMIT sets the limit of bodies', async () => {
    const small = { ...at, at: createTempFolder(), env: { ATOLL_BODY_LIMIT: '2000' } }
    await createTenantByCli(small, 'acme')
    await using server = await startAtoll(small)
    const call = apiCaller(server.url, { tenant: 'acme' })
    const body = (size: number) => ({ username: 'x', password: 'x', more: 'x'.repeat(size) })
    expect((await call('POST', '/api/signin', body(1_800))).status).toBe(401)
    expect((await call('POST', '/api/signin', body(2_000))).body.code).toBe('BODY_TOO_LARGE')
  })

  test('an internal error answers 500 INTERNAL with only its request id, and the log holds the cause under that id', async () => {
    const broken = { at: createTempFolder() }
    await createTenantByCli(broken, 'acme')
    const database = new BetterSqlite(join(broken.at, 'tenants/acme/data.db'))
    database.exec('drop table api_tokens')
    database.close()
    await using server = await startAtoll(broken)
    const call = apiCaller(server.url, {
      tenant: 'acme',
      'x-api-key': `atl_${'0'.repeat(64)}`,
      'x-request-id': 'my-own',
    })
    const { status, body, headers } = await call('GET', '/api/me')
    expect([status, body.code, headers.get('x-request-id')]).toEqual([500, 'INTERNAL', 'my-own'])
    expect(JSON.stringify(body)).not.toMatch(/sqlite|database|\.db|node_modules|src\//i)
    await server.end('SIGTERM')
    const line = (await server.logged).split('\n').find((one) => one.includes('my-own'))
    expect(line).toMatch(/no such table/)
    expect(body.details).toEqual({ requestId: 'my-own' })
  })
})

describe('GET /openapi/json', () => {
  type Schema = Record<string, unknown>
  type Operation = {
    responses: Record<string, { $ref?: string; description?: string; content?: Record<string, { schema?: Schema }> }>
    parameters?: { name: string; in: string; required?: boolean; schema?: Schema; $ref?: string }[]
    requestBody?: { content: Record<string, { schema: Schema }> }
    operationId?: string
    security: object[]
  }
  type Api = { openapi: string; info: { version: string }; paths: Record<string, Record<string, Operation>> }
  let api: Api & { components: Record<string, Record<string, object>> }
  let operations: [string, Operation][]
  beforeAll(async () => {
    api = (await callApi('GET', `${t.origin}/openapi/json`)).body
    operations = Object.entries(api.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]): [string, Operation] => [`${method} ${path}`, operation]),
    )
  })

  /** Every object in a document, with where it is. */
  function* objects(value: unknown, at = '#'): Generator<[string, Record<string, unknown>]> {
    if (value === null || typeof value !== 'object') return
    if (!Array.isArray(value)) yield [at, value as Record<string, unknown>]
    for (const [key, part] of Object.entries(value)) yield* objects(part, `${at}/${key}`)
  }

  test('the document declares a version of OpenAPI 3 and of the API', () => {
    expect(api.openapi).toMatch(/^3\.[01]\.\d+$/)
    expect(api.info.version).toMatch(/^\d+\.\d+\.\d+$/)
  })

  test('the document has every route that is not hidden', () => {
    const described = operations.map(([name]) => name)
    for (const { method, path, hooks } of app.routes) {
      // Hidden routes are our own pages and the routes of plugins, which plugins describe themselves.
      if (hooks.detail?.hide) continue
      const name = `${method.toLowerCase()} ${path.replace(/:(\w+)/g, '{$1}')}`
      const found = described.some((one) => one.replace(/\/$/, '') === name.replace(/\/$/, ''))
      expect(found, name).toBeTrue()
    }
  })

  test('every $ref of the document resolves', () => {
    for (const [at, { $ref }] of objects(api)) {
      if (typeof $ref !== 'string') continue
      const steps = $ref.replace(/^#\//, '').split('/')
      const target = steps.reduce<unknown>((part, step) => (part as Record<string, unknown> | undefined)?.[step], api)
      expect(target, `${$ref} at ${at}`).toBeDefined()
    }
  })

  test('every operation has a success and describes each of its responses', () => {
    expect(operations.length).toBeGreaterThan(20)
    for (const [name, { responses }] of operations) {
      expect(Object.keys(responses ?? {}).length, name).toBeGreaterThan(0)
      expect(
        Object.keys(responses).some((status) => /^[23]/.test(status)),
        `${name} can succeed`,
      ).toBeTrue()
      for (const [status, { description, $ref }] of Object.entries(responses)) {
        expect(status, name).toMatch(/^([1-5]\d\d|default)$/)
        expect($ref ?? description, `${name} ${status}`).toBeString()
      }
    }
  })

  test('every path segment in braces is a required parameter, and operation ids are unique', () => {
    for (const [name, { parameters = [] }] of operations) {
      const inPath = [...name.matchAll(/\{(\w+)\}/g)].map(([, key]) => key as string)
      const pathParameters = parameters.filter((one) => one.in === 'path')
      expect(pathParameters.map((one) => one.name).sort(), name).toEqual(inPath.sort())
      for (const one of pathParameters) expect(one.required, `${name} ${one.name}`).toBeTrue()
      const own = parameters.filter(({ $ref }) => !$ref)
      expect(new Set(own.map((one) => `${one.in} ${one.name}`)).size, name).toBe(own.length)
      for (const one of own) expect(one.schema, `${name} ${one.name}`).toBeObject()
    }
    const ids = operations.map(([, { operationId }]) => operationId).filter(Boolean)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('every operation lists security schemes that the document defines', () => {
    const schemes = Object.keys(api.components.securitySchemes ?? {})
    for (const [name, { security }] of operations) {
      expect(security, name).toBeArray()
      for (const scheme of security.flatMap((one) => Object.keys(one))) expect(schemes, name).toContain(scheme)
    }
  })

  test('every operation with a body describes its schema', () => {
    const bodies = operations.flatMap(([name, { requestBody }]) => (requestBody ? [[name, requestBody] as const] : []))
    expect(bodies.length).toBeGreaterThan(80)
    for (const [name, { content }] of bodies) {
      expect(Object.keys(content), name).not.toBeEmpty()
      for (const { schema } of Object.values(content)) expect(schema, name).toBeObject()
    }
    for (const { method, path, hooks } of app.routes) {
      const name = `${method.toLowerCase()} ${path.replace(/(.)\/$/, '$1').replace(/:(\w+)/g, '{$1}')}`
      if (hooks.body)
        expect(
          bodies.map(([one]) => one),
          name,
        ).toContain(name)
    }
  })

  test('the document uses only keywords of OpenAPI 3.1', () => {
    expect(api.openapi).toStartWith('3.1')
    for (const [at, part] of objects({ paths: api.paths, components: api.components })) {
      // Keys below these are names or data.
      if (/\/(properties|example|enum|headers|responses|schemas)$|\/example\//.test(at)) continue
      for (const word of ['nullable', 'x-nullable', 'definitions', '$id'])
        expect(Object.keys(part), at).not.toContain(word)
      if ('schema' in part || 'properties' in part) expect(part.type ?? 'object', at).not.toBe('file')
      expect(part.exclusiveMinimum ?? 0, at).toBeNumber()
      expect(part.exclusiveMaximum ?? 0, at).toBeNumber()
      expect(part.required ?? [], at).toSatisfy((value) => Array.isArray(value) || typeof value === 'boolean')
    }
  })

  test('GET /openapi answers a page whose scripts and styles are served', async () => {
    const page = await callApi('GET', `${t.origin}/openapi`)
    expect(page.headers.get('content-type')).toStartWith('text/html')
    const needed = [...(page.body as string).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path as string)
    expect(needed.length).toBeGreaterThan(1)
    for (const path of needed) {
      const { status, headers, body } = await callApi('GET', new URL(path, t.origin).href)
      expect([status, path]).toEqual([200, path])
      expect(headers.get('content-type')).toMatch(/javascript|css/)
      expect(String(body).length).toBeGreaterThan(20)
    }
  })
})

test('GET /health answers 200 without a tenant', async () => {
  const { status, body } = await callApi('GET', 'http://nobody.test/health')
  expect([status, body]).toEqual([200, { status: 'ok' }])
  config.ATOLL_DEFAULT_TENANT = 'none'
  try {
    expect((await callApi('GET', 'http://nobody.test/health')).status).toBe(200)
  } finally {
    config.ATOLL_DEFAULT_TENANT = ''
  }
})

test('`atoll version` and the OpenAPI document have the same version', async () => {
  const { version } = (await runAtoll('version --json', { at: createTempFolder() })).json
  expect((await callApi('GET', `${t.origin}/openapi/json`)).body.info.version).toBe(version)
})
