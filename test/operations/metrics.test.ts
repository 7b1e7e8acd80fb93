import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { tokenCounts } from '../../src/ai/usage/usage-record'
import { config } from '../../src/config'
import { moveClock, now } from '../../src/core/clock'
import { handleRequest } from '../../src/gateway'
import { emit } from '../../src/jobs/outbox'
import { enqueue } from '../../src/jobs/queue'
import { damagedDatabases } from '../../src/operations/integrity'
import { startLagMeasurement } from '../../src/operations/metrics/event-loop-lag'
import { RecentRequests } from '../../src/operations/metrics/recent-requests'
import { setServer } from '../../src/tenancy/client-connection'
import { callApi, createTestTenant, statusAndCode } from '../test-tenant'
import { waitUntil } from '../wait-until'

setDefaultTimeout(30_000)

type Sample = { name: string; labels: Record<string, string>; value: number }

/** Returns the samples of the text format of Prometheus. */
const parseSamples = (text: string): Sample[] =>
  text
    .split('\n')
    .filter((line) => line && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
      expect(name, line).not.toBe('')
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, of]) => [key, of])
      return { name, labels: Object.fromEntries(pairs), value: Number(value) }
    })

const readText = async () => {
  const { status, body } = await callApi('GET', 'http://localhost/metrics')
  expect(status).toBe(200)
  return body as string
}
async function read(name: string, labels: Record<string, string> = {}): Promise<number> {
  const samples = parseSamples(await readText()).filter(
    (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  )
  return samples.reduce((sum, { value }) => sum + value, 0)
}

let t: Awaited<ReturnType<typeof createTestTenant>>
beforeAll(async () => {
  // Another test may have left its server.
  setServer(undefined)
  t = await createTestTenant()
})

describe('access to the metrics', () => {
  const token = 'operator-token-of-this-test'
  const original = config.ATOLL_OPERATOR_TOKEN
  beforeAll(() => {
    config.ATOLL_OPERATOR_TOKEN = token
  })
  afterAll(() => {
    config.ATOLL_OPERATOR_TOKEN = original
  })
  const ask = (headers: Record<string, string> = {}) => callApi('GET', 'http://localhost/metrics', { headers })

  test('a request from the same machine needs no token', async () => {
    const { status, headers } = await ask()
    expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
  })

  test('a request that a proxy forwards needs the token of the operator', async () => {
    const forwarded = { 'x-forwarded-for': '127.0.0.1' }
    expect(statusAndCode(await ask(forwarded))).toEqual([401, 'UNAUTHENTICATED'])
    expect((await ask({ ...forwarded, authorization: `Bearer ${token}` })).status).toBe(200)
  })

  test('a page of another site in a browser on the same machine needs the token', async () => {
    const ofPages: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ]
    for (const headers of ofPages) expect(statusAndCode(await ask(headers))).toEqual([401, 'UNAUTHENTICATED'])
    expect((await ask({ 'sec-fetch-site': 'none' })).status).toBe(200)
  })

  test('a wrong token is refused, also on the same machine, and a token of a tenant means nothing', async () => {
    expect(statusAndCode(await ask({ authorization: 'Bearer wrong' }))).toEqual([401, 'UNAUTHENTICATED'])
    const answer = await ask({ 'x-forwarded-for': '203.0.113.9', 'x-api-key': t.tokens.admin })
    expect(statusAndCode(answer)).toEqual([401, 'UNAUTHENTICATED'])
  })
})

describe('the metrics', () => {
  test('every metric has a sentence that describes it, and a name with the prefix of the program or the process', async () => {
    const text = await readText()
    const helped = [...text.matchAll(/^# HELP (\w+) (.*)$/gm)]
    expect(helped.length).toBeGreaterThan(30)
    for (const [, name = '', help] of helped) {
      expect(help, name).toMatch(/^[A-Z].{10,200}\.$/)
      expect(name).toMatch(/^(atoll|process)_[a-z_]+$/)
    }
    const types = new Map([...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => [name, type]))
    for (const [name, type] of types) if (type === 'counter') expect(name).toEndWith('_total')
    expect([...types.keys()].sort()).toEqual(helped.map(([, name]) => name!).sort())
  })

  test('requests are counted by method, route and status, and their paths and parameters appear nowhere', async () => {
    const route = { method: 'GET', route: '/api/blueprints/:key', status: '404' }
    const before = await read('atoll_http_requests_total', route)
    for (let n = 0; n < 3; n++) await t.as('admin').get(`/blueprints/hidden-${n}?x=hidden`)
    expect((await read('atoll_http_requests_total', route)) - before).toBe(3)
    const { status: _, ...labels } = route
    const durations = parseSamples(await readText()).filter(
      ({ name, labels: own }) =>
        name === 'atoll_http_request_duration_seconds_bucket' && own.route === labels.route && own.method === 'GET',
    )
    expect(durations.at(-1)).toMatchObject({ labels: { le: '+Inf' } })
    const values = durations.map(({ value }) => value)
    expect(values).toEqual([...values].sort((one, other) => one - other))
    expect(await read('atoll_http_request_duration_seconds_count', labels)).toBe(values.at(-1)!)
    expect(await readText()).not.toContain('hidden')
  })

  test('unknown paths and invented methods have one label each', async () => {
    const unknown = { route: 'unknown', status: '404' }
    const before = await read('atoll_http_requests_total', unknown)
    for (let n = 0; n < 5; n++) await callApi('GET', `${t.origin}/no-such-path-${n}`)
    expect((await read('atoll_http_requests_total', unknown)) - before).toBe(5)
    for (const method of ['PROPFIND', 'MKCOL']) await handleRequest(new Request(`${t.origin}/nowhere`, { method }))
    expect(await readText()).not.toMatch(/PROPFIND|MKCOL/)
    expect(await read('atoll_http_requests_total', { method: '_OTHER' })).toBeGreaterThanOrEqual(2)
  })

  test('the work that waits at tenants in use is counted', async () => {
    await t.as('user').get('/me')
    const fresh = await read('atoll_jobs_waiting', { state: 'fresh' })
    const time = now()
    await t.tenant.write(async (tx) => {
      for (let n = 0; n < 3; n++) await enqueue(t.tenant, tx, { kind: 'mail', at: time - 90_000 })
      await emit(t.tenant, tx, { source: 'x', kind: 'x', eventName: 'x' })
    })
    // The numbers are counted at most every five seconds.
    await waitUntil(
      () => read('atoll_jobs_waiting', { state: 'fresh' }),
      (count) => count === fresh + 3,
    )
    expect(await read('atoll_jobs_oldest_due_seconds')).toBeGreaterThanOrEqual(90)
    expect(await read('atoll_outbox_events')).toBeGreaterThanOrEqual(0)
    moveClock()
  })

  test('every kind of job and every payment provider has counters that begin at 0', async () => {
    const samples = parseSamples(await readText())
    const kinds = new Set(samples.flatMap(({ name, labels }) => (name === 'atoll_jobs_total' ? labels.kind! : [])))
    for (const kind of ['mail', 'delivery', 'integration', 'unknown']) expect(kinds).toContain(kind)
    const providers = samples.flatMap(({ name, labels }) =>
      name === 'atoll_payment_drifts_total' ? labels.provider : [],
    )
    expect(providers.sort()).toEqual(['paddle', 'paypal', 'stripe'])
  })

  test('tenants, open databases, damage, tokens, memory, disk and version have plausible values', async () => {
    damagedDatabases.set('hurt', { flaws: ['row 1 missing'], time: now() })
    tokenCounts.prompt += 7
    expect(await read('atoll_damaged_tenants')).toBeGreaterThanOrEqual(1)
    damagedDatabases.delete('hurt')
    expect(await read('atoll_ai_tokens_total', { type: 'prompt' })).toBeGreaterThanOrEqual(7)
    expect(await read('atoll_tenants', { status: 'active' })).toBeGreaterThanOrEqual(2)
    expect(await read('atoll_open_tenants')).toBeGreaterThanOrEqual(1)
    expect(await read('atoll_open_tenants_limit')).toBeGreaterThan(0)
    expect(await read('process_resident_memory_bytes')).toBeGreaterThan(10 << 20)
    expect(await read('process_cpu_seconds_total')).toBeGreaterThan(0)
    expect(await read('process_open_fds')).toBeGreaterThan(3)
    expect(Math.abs((await read('process_start_time_seconds')) - Date.now() / 1_000)).toBeLessThan(3_600)
    expect(await read('atoll_disk_free_bytes')).toBeLessThanOrEqual(await read('atoll_disk_size_bytes'))
    const engine = config.ATOLL_DATABASE_URL ? 'postgres' : 'sqlite'
    expect(await read('atoll_build_info', { bun: Bun.version, engine })).toBe(1)
    expect(await read('atoll_database_read_duration_seconds_count', { engine })).toBeGreaterThan(0)
    expect(await read('atoll_database_commit_writes_count', { engine })).toBeGreaterThan(0)
    if (engine === 'postgres')
      expect(await read('atoll_database_connections', { cluster: 'main' })).toBeGreaterThanOrEqual(1)
  })

  test('the lag of the event loop is measured', async () => {
    const stop = startLagMeasurement()
    const before = await read('atoll_event_loop_lag_seconds_count')
    await waitUntil(async () => (await read('atoll_event_loop_lag_seconds_count')) > before)
    stop()
  })
})

describe('the requests of the last whole minute', () => {
  test('requests are counted with their errors, durations and tenants, once the minute is over', () => {
    const recent = new RecentRequests(0)
    for (let n = 0; n < 12; n++)
      for (let count = 0; count <= n; count++) recent.record(59_999, 0.02, n ? 200 : 503, `t${n}`)
    recent.record(59_999, 3, 401, undefined)
    expect(recent.getLastMinute(59_999).durations.count).toBe(0)
    recent.record(60_000, 1, 500, 'later')
    const { errors, durations } = recent.getLastMinute(60_001)
    expect([errors, durations.count, durations.getQuantile(0.95), durations.getQuantile(1)]).toEqual([1, 79, 0.025, 5])
    expect(recent.listTopTenants(10, 60_001)).toEqual(
      Array.from({ length: 10 }, (_, n) => [`t${11 - n}`, 12 - n] as [string, number]),
    )
    expect(recent.listTopTenants(10, 120_000)).toEqual([['later', 1]])
  })

  test('requests are forgotten after a minute without any', () => {
    const recent = new RecentRequests(0)
    recent.record(1, 1, 200, 'acme')
    expect(recent.getLastMinute(180_000).durations.count).toBe(0)
    expect(recent.getLastMinute(240_001).durations.count).toBe(0)
  })

  test('tenants beyond ten thousand in a minute are not counted, so that memory is bounded', () => {
    const recent = new RecentRequests(0)
    for (let n = 0; n < 12_000; n++) recent.record(1, 1, 200, `t${n}`)
    recent.record(1, 1, 200, 't5')
    const { tenants, durations } = recent.getLastMinute(60_000)
    expect([tenants.size, durations.count, tenants.get('t5')]).toEqual([10_000, 12_001, 2])
  })
})
