// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readTraceExport } from '../../src/core/trace-variables'
import { apiCaller, createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { startOtlpCollector } from '../fakes/otlp-collector'
import { startWebhookReceiver } from '../fakes/webhook-receiver'
import { waitUntil } from '../wait-until'

setDefaultTimeout(60_000)

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const SPAN_ID = 'b7ad6b7169203331'

describe('the export of traces by a server', () => {
  test('spans of requests, statements, jobs and calls to others form one trace', async () => {
    await using collector = startOtlpCollector()
    const receiver = startWebhookReceiver()
    const at = {
      at: createTempFolder(),
      env: {
        ...{ ATOLL_LOG_LEVEL: 'info', ATOLL_LOG_FORMAT: 'json', ATOLL_ALLOW_PRIVATE_NETWORK: 'on' },
        ...{ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_HEADERS: 'x-key=abc' },
        ...{
          OTEL_SERVICE_NAME: 'shop',
          OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
          OTEL_UNKNOWN: 'x',
        },
      },
    }
    await createTenantByCli(at, 'acme')
    await using server = await startAtoll(at)
    const caller = await signIn(server.url, 'acme')
    const call = apiCaller(server.url, caller)
    const plugin = await call('POST', '/api/plugins', {
      ...{ name: 'p', type: 'plugin', url: receiver.url },
      subscribedEvents: [{ source: '*', kind: 'order', eventName: '*', hookUrl: `${receiver.url}/hooks` }],
    })
    expect(plugin.status).toBe(201)
    const traced = { ...caller, traceparent: `00-${TRACE_ID}-${SPAN_ID}-01`, tracestate: 'vendor=1' }
    const event = { source: 'shop', kind: 'order', eventName: 'placed' }
    const response = await apiCaller(server.url, traced)('POST', '/api/events?secret=hidden', event)
    expect(response.status).toBe(201)
    await waitUntil(() => receiver.deliveries.length)
    // The server has to know of the answer, too, before it is stopped.
    await waitUntil(
      () => call('GET', `/api/plugins/${plugin.body._id}`),
      ({ body }) => body.health.status === 'ok',
    )
    expect(await server.end('SIGTERM')).toBe(0)
    await receiver.stop()

    const trace = collector.spans.filter(({ traceId }) => traceId === TRACE_ID)
    const [request] = trace.filter(({ kind }) => kind === 'server')
    expect(request).toMatchObject({
      ...{ name: 'POST /api/events', parentSpanId: SPAN_ID, isError: false },
      attributes: {
        ...{ 'http.request.method': 'POST', 'http.route': '/api/events', 'http.response.status_code': 201 },
        ...{ 'url.scheme': 'http', 'atoll.tenant': 'acme', 'user.id': expect.any(String) },
      },
      resource: { 'service.name': 'shop', 'service.version': '0.1.0', 'deployment.environment.name': 'test' },
    })
    const transaction = trace.find(
      ({ name, parentSpanId }) => name === 'TRANSACTION' && parentSpanId === request!.spanId,
    )
    expect(transaction!.attributes).toEqual({
      ...{ 'db.system.name': 'sqlite', 'db.operation.name': 'TRANSACTION', 'atoll.tenant': 'acme' },
    })
    const job = trace.find(({ name }) => name === 'job delivery')!
    expect(job).toMatchObject({
      kind: 'consumer',
      attributes: { 'atoll.tenant': 'acme', 'atoll.job.kind': 'delivery' },
    })
    const outbound = trace.find(({ attributes }) => 'server.address' in attributes)!
    expect(outbound).toMatchObject({
      ...{ name: 'POST', kind: 'client', parentSpanId: job.spanId },
      attributes: { 'server.address': '127.0.0.1', 'http.response.status_code': 200 },
    })
    expect(receiver.deliveries[0]!.headers).toMatchObject({ traceparent: `00-${TRACE_ID}-${outbound.spanId}-01` })
    const statement = collector.spans.find(({ name }) => name === 'SELECT')!
    expect(statement.attributes).toMatchObject({ 'db.system.name': 'sqlite', 'db.query.text': expect.any(String) })
    expect(collector.requests[0]).toMatchObject({ path: '/v1/traces', headers: { 'x-key': 'abc' } })
    expect(JSON.stringify(collector.spans)).not.toMatch(/hidden|correct horse|placed/)

    const lines = (await server.logged)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.find(({ route, method }) => route === '/api/events' && method === 'POST')).toMatchObject({
      traceId: TRACE_ID,
    })
    expect(lines.map(({ event }) => event)).toContain('trace-export')
  })

  test('a server starts, serves and stops without a collector, and says so in at most one line', async () => {
    const at = {
      at: createTempFolder(),
      env: {
        ATOLL_LOG_FORMAT: 'pretty',
        OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
        OTEL_EXPORTER_OTLP_TIMEOUT: '200',
      },
    }
    await using server = await startAtoll(at)
    for (let n = 0; n < 5; n++) expect((await apiCaller(server.url)('GET', '/health')).status).toBe(200)
    const began = performance.now()
    expect(await server.end('SIGTERM')).toBe(0)
    expect(performance.now() - began).toBeLessThan(8_000)
    const failures = (await server.logged).split('\n').filter((line) => line.includes('TRACES_NOT_EXPORTED'))
    expect(failures.length).toBeLessThanOrEqual(1)
  })
})

describe('the metrics of a server behind a trusted proxy', () => {
  test('the address that the proxy forwards decides who needs the token', async () => {
    const env = { ATOLL_TRUST_PROXY: 'on', ATOLL_OPERATOR_TOKEN: 'token-of-the-operator' }
    await using server = await startAtoll({ at: createTempFolder(), env })
    const ask = async (headers: Record<string, string>) =>
      (await apiCaller(server.url, headers)('GET', '/metrics')).status
    expect(await ask({})).toBe(200)
    expect(await ask({ 'x-forwarded-for': '203.0.113.9, 127.0.0.1' })).toBe(200)
    expect(await ask({ 'x-forwarded-for': '127.0.0.1, 203.0.113.9' })).toBe(401)
    const forwarded = { 'x-forwarded-for': '203.0.113.9' }
    expect(await ask({ ...forwarded, authorization: 'Bearer wrong' })).toBe(401)
    expect(await ask({ ...forwarded, authorization: 'Bearer token-of-the-operator' })).toBe(200)
    const { body } = await apiCaller(server.url)('GET', '/metrics')
    expect(body).toContain('# TYPE atoll_http_request_duration_seconds histogram\n')
    expect(body).toContain('atoll_http_requests_total{method="GET",route="/metrics",status="401"} 2\n')
    await server.end('SIGTERM')
    expect(await server.logged).not.toContain('token-of-the-operator')
  })
})

describe('the variables of OpenTelemetry', () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }

  test('traces are exported when an endpoint is given and nothing switches that off', () => {
    expect(readTraceExport({}).isOn).toBe(false)
    expect(readTraceExport(endpoint)).toEqual({ isOn: true, sampler: 'parentbased_always_on', share: 1 })
    expect(readTraceExport({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:4318/v1/traces' }).isOn).toBe(true)
    expect(readTraceExport({ ...endpoint, OTEL_SDK_DISABLED: 'true' }).isOn).toBe(false)
    expect(readTraceExport({ ...endpoint, OTEL_TRACES_EXPORTER: 'none' }).isOn).toBe(false)
  })

  test('a sampler and its share are read, and invalid ones are ignored', () => {
    const given = { ...endpoint, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25' }
    expect(readTraceExport(given)).toMatchObject({ sampler: 'traceidratio', share: 0.25 })
    const invalid = { ...endpoint, OTEL_TRACES_SAMPLER: 'sometimes', OTEL_TRACES_SAMPLER_ARG: '7' }
    expect(readTraceExport(invalid)).toMatchObject({ sampler: 'parentbased_always_on', share: 1 })
  })
})
