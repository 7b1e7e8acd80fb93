// engine: sqlite
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { logError, logOutput, setLogLevel } from '../../src/core/log'
import { apiCaller, createTempFolder, createTenantByCli, runAtoll, signIn, startAtoll } from '../fakes/cli'
import { callApi, createTestTenant } from '../test-tenant'

setDefaultTimeout(60_000)

type Line = Record<string, unknown>
const lines: Line[] = []
const spy = spyOn(logOutput, 'write')
let t: Awaited<ReturnType<typeof createTestTenant>>

beforeAll(async () => {
  t = await createTestTenant()
  const things = { key: 'things', name: 'Things', fields: [{ key: 'name', type: 'string' }] }
  await t.as('admin').post('/blueprints', things)
})
beforeEach(() => {
  lines.length = 0
  spy.mockImplementation((line) => {
    expect(line).toMatch(/^\{.*\}\n$/)
    lines.push(JSON.parse(line))
  })
  setLogLevel('info')
})
afterEach(() => setLogLevel('error'))
afterAll(() => spy.mockRestore())

/** Sends one request and returns its answer with the log lines of its request id. */
async function logLinesOf(method: string, url: string, init: Parameters<typeof callApi>[2] = {}) {
  const requestId = crypto.randomUUID()
  const answer = await callApi(method, url, { ...init, headers: { ...init.headers, 'x-request-id': requestId } })
  // The line of a streamed answer is written only when its length is known.
  while (!lines.some((line) => line.requestId === requestId && 'status' in line)) await Bun.sleep(1)
  return { answer, found: lines.filter((line) => line.requestId === requestId) }
}
const lastLineOf = async (...args: Parameters<typeof logLinesOf>) => (await logLinesOf(...args)).found.at(-1)!

describe('the log line of a request', () => {
  test('the log line of a request holds time, tenant, user, method, route, status, duration and bytes', async () => {
    const headers = { 'x-api-key': t.tokens.user }
    const { found, answer } = await logLinesOf('GET', `${t.origin}/api/me`, { headers })
    expect(found).toEqual([
      {
        level: 'info',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        requestId: answer.headers.get('x-request-id'),
        tenant: t.id,
        user: t.users.user,
        method: 'GET',
        route: '/api/me',
        status: 200,
        ms: expect.any(Number),
        bytes: JSON.stringify(answer.body).length,
      },
    ])
    expect(Object.keys(found[0]!).slice(0, 3)).toEqual(['level', 'time', 'requestId'])
  })

  test('the log line names the route by its pattern for every status and never holds parts of the URL or a token', async () => {
    const headers = { 'x-api-key': t.tokens.admin }
    const entity = '/api/blueprints/:key/entities/:identifier'
    const cases: [string, string, string | undefined, number][] = [
      ['POST', '/api/blueprints/things/entities', '/api/blueprints/:key/entities', 201],
      ['GET', '/api/blueprints/things/entities/secret-one?$flat=secret', entity, 404],
      ['GET', '/api/blueprints/things/entities/secret-one', entity, 404],
      ['GET', '/api/v1/blueprints/things/entities/secret-one', entity, 404],
      ['DELETE', '/api/blueprints/things/entities/secret-one', entity, 404],
      ['GET', '/api/secret-one', '/api/*', 404],
      ['GET', '/secret-one', undefined, 404],
      ['PATCH', '/api/signin', '/api/*', 405],
      ['GET', '/health', '/health', 200],
      ['HEAD', '/health', '/health', 200],
      ['GET', '/openapi', '/openapi', 200],
    ]
    for (const [method, path, route, status] of cases) {
      const body = method === 'POST' ? { name: 'secret-two ü' } : undefined
      const { answer, found } = await logLinesOf(method, `${t.origin}${path}`, { headers, body })
      const line = found.at(-1)!
      expect([method, path, line.route, line.status]).toEqual([method, path, route, status])
      expect(answer.status).toBe(status)
      if (answer.body?._id) expect(line.bytes).toBe(Buffer.byteLength(JSON.stringify(answer.body)))
      expect(JSON.stringify(found)).not.toContain('secret')
      expect(JSON.stringify(found)).not.toContain(t.tokens.admin)
    }
  })

  test('the log line holds the code of a refusal, and the admin of an impersonated request', async () => {
    const headers = { 'x-api-key': t.tokens.admin, 'x-impersonate-user': t.users.user }
    expect(await lastLineOf('GET', `${t.origin}/api/me`, { headers })).toMatchObject({
      user: t.users.admin,
      status: 200,
    })
    const line = await lastLineOf('GET', `${t.origin}/api/blueprints/none`, {
      headers: { 'x-api-key': t.tokens.admin },
    })
    expect(line).toMatchObject({ status: 404, code: 'BLUEPRINT_NOT_FOUND', level: 'info', bytes: expect.any(Number) })
  })

  test('the log line of a first and of a replayed request with an Idempotency-Key holds status 201 and bytes', async () => {
    const headers = { 'x-api-key': t.tokens.admin, 'idempotency-key': crypto.randomUUID() }
    for (const bytes of [expect.any(Number), expect.any(Number)])
      expect(
        await lastLineOf('POST', `${t.origin}/api/blueprints/things/entities`, { headers, body: { name: 'a' } }),
      ).toMatchObject({ tenant: t.id, status: 201, bytes })
  })

  test('a request with quotes, backslashes or newlines in header or path writes exactly one log line', async () => {
    for (const tenant of ['"', '\\', 'a","level":"error', '<script>'])
      expect((await logLinesOf('GET', `${t.origin}/api/me`, { headers: { tenant } })).found).toHaveLength(1)
    expect((await logLinesOf('GET', `${t.origin}/%22,%0a`)).found).toHaveLength(1)
  })

  test.each(['warn', 'error', 'silent'] as const)('no request line is written at the log level %s', async (level) => {
    setLogLevel(level)
    await t.as('user').get('/me')
    await t.anonymous.get('/blueprints')
    await Bun.sleep(5)
    expect(lines.filter((line) => 'status' in line)).toEqual([])
  })
})

describe('the log line of a refused request', () => {
  const eventsOf = async (...args: Parameters<typeof logLinesOf>) => {
    const { found } = await logLinesOf(...args)
    return found.map(({ level, event, code }) => [level, event, code])
  }
  const requestLine = (code: string) => ['info', undefined, code]

  test('a refused request writes a warning with its event: unauthenticated, forbidden, signin-failed or rate-limited', async () => {
    const users = `${t.origin}/api/users`
    expect(await eventsOf('GET', users)).toEqual([
      ['warn', 'unauthenticated', 'UNAUTHENTICATED'],
      requestLine('UNAUTHENTICATED'),
    ])
    const user = { headers: { 'x-api-key': t.tokens.user } }
    expect(await eventsOf('GET', users, user)).toEqual([['warn', 'forbidden', 'FORBIDDEN'], requestLine('FORBIDDEN')])
    const body = { username: 'admin', password: 'a wrong password' }
    const signin = () => logLinesOf('POST', `${t.origin}/api/signin`, { body })
    const { found } = await signin()
    expect(found[0]).toMatchObject({
      ...{ level: 'warn', event: 'signin-failed', tenant: t.id, method: 'POST', route: '/api/signin' },
      ...{ code: 'INVALID_CREDENTIALS', address: expect.any(String), requestId: expect.any(String) },
    })
    expect(JSON.stringify(lines)).not.toContain('wrong')
    const events: unknown[] = []
    for (let n = 0; n < 15; n++) events.push((await signin()).found[0]!.event)
    expect(events.at(-1)).toBe('rate-limited')
  })

  test('a refused request writes no warning at the log level error', async () => {
    setLogLevel('error')
    await t.anonymous.get('/users')
    expect(lines).toEqual([])
  })
})

test('an error line holds its request id, its tenant and the cause of its cause', () => {
  const inner = new Error('inner')
  logError('X_FAILED', { requestId: 'r', tenant: 't', cause: new Error('outer', { cause: inner }) })
  expect(lines).toEqual([
    {
      ...{ level: 'error', time: expect.any(String), what: 'X_FAILED', requestId: 'r', tenant: 't' },
      cause: expect.stringContaining('inner'),
    },
  ])
})

test('an error thrown by a lambda writes no line at the level error, only the line of its request', async () => {
  const admin = t.as('admin')
  const made = await admin.post('/lambdas', {
    name: 'broken',
    code: 'export default () => { throw new Error("mine") }',
  })
  expect(made.status).toBe(201)
  const headers = { 'x-api-key': t.tokens.admin }
  const { found } = await logLinesOf('POST', `${t.origin}/api/lambdas/${made.body._id}/execute`, { headers, body: {} })
  expect(lines.filter(({ level }) => level === 'error')).toEqual([])
  expect(found.at(-1)).toMatchObject({ route: '/api/lambdas/:id/execute' })
})

describe('the log of a server', () => {
  const parsed = (log: string): Line[] =>
    log
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))

  test('a server logs start, requests and stop to standard error, and prints only its URL to standard output', async () => {
    const at = { at: createTempFolder(), env: { ATOLL_LOG_LEVEL: 'info' } }
    await createTenantByCli(at, 'acme')
    await using server = await startAtoll(at, '--json')
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    for (let n = 0; n < 200; n++) await call('GET', '/api/me?password=hidden')
    await server.end('SIGTERM')
    const log = parsed(await server.logged)
    expect(log.filter(({ event }) => event).map(({ event }) => event)).toEqual(['start', 'ready', 'stop', 'stopped'])
    expect(log[0]).toMatchObject({
      level: 'info',
      version: expect.any(String),
      folder: `${at.at}/tenants`,
      engine: 'sqlite',
    })
    expect(log[1]).toMatchObject({ url: server.url, tenants: 1 })
    expect(log.at(-2)).toMatchObject({ signal: 'SIGTERM' })
    expect(log.filter(({ route }) => route === '/api/me')).toHaveLength(200)
    expect(server.readOutput()).toBe(`${JSON.stringify({ url: server.url })}\n`)
    expect(JSON.stringify(log)).not.toMatch(/hidden|correct horse/)
  })

  test('a server warns at its start when the default tenant does not exist', async () => {
    const at = { at: createTempFolder(), env: { ATOLL_LOG_LEVEL: 'warn', ATOLL_DEFAULT_TENANT: 'nope' } }
    await using server = await startAtoll(at)
    await server.end('SIGTERM')
    expect(parsed(await server.logged)).toMatchObject([
      { level: 'warn', event: 'default-tenant-missing', message: expect.stringContaining('"nope"') },
    ])
  })

  test('a server exits with code 2 for an invalid default tenant id or an unknown log level', async () => {
    const wrong: Record<string, string>[] = [{ ATOLL_DEFAULT_TENANT: 'No pe' }, { ATOLL_LOG_LEVEL: 'loud' }]
    for (const env of wrong) {
      const { code, err } = await runAtoll('serve', { at: createTempFolder(), env })
      expect([code, err]).toEqual([2, expect.stringContaining(Object.keys(env)[0]!)])
    }
  })
})
