import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { config } from '../../src/config'
import { logOutput, setLogLevel } from '../../src/core/log'
import { currentTrace, runInTrace } from '../../src/core/trace'
import { JobRunner, runDueJobs } from '../../src/jobs/runner'
import { startWebhookReceiver } from '../fakes/webhook-receiver'
import { allowPrivateNetwork, createOrderPlugin, denyPrivateNetwork, newOrderEvent } from '../plugins/fixtures'
import { createTestTenant } from '../test-tenant'
import { waitUntil } from '../wait-until'

setDefaultTimeout(30_000)

const toHeader = (letter: string) => `00-${letter.repeat(32)}-${'1'.repeat(16)}-00`
const receiver = startWebhookReceiver()
const lines: Record<string, unknown>[] = []
const output = spyOn(logOutput, 'write')
let t: Awaited<ReturnType<typeof createTestTenant>>
beforeAll(async () => {
  allowPrivateNetwork()
  t = await createTestTenant()
  await createOrderPlugin(t.as('admin'), [`${receiver.url}/hooks`])
})
beforeEach(() => {
  lines.length = 0
  receiver.deliveries.length = 0
  output.mockImplementation((line) => void lines.push(JSON.parse(line)))
  setLogLevel('info')
})
afterAll(async () => {
  setLogLevel(config.ATOLL_LOG_LEVEL)
  output.mockRestore()
  denyPrivateNetwork()
  await receiver.stop()
})

describe('a trace of a caller', () => {
  test('the line of a request names the trace of a valid header, and none without or with an invalid one', async () => {
    const admin = t.as('admin')
    await admin.get('/blueprints', { traceparent: toHeader('a') })
    await admin.get('/blueprints', { traceparent: 'nonsense' })
    await admin.get('/blueprints')
    expect(lines.map(({ traceId }) => traceId)).toEqual(['a'.repeat(32), undefined, undefined])
  })

  test('a trace goes on in the deliveries of the events that its request caused, and events do not show it', async () => {
    const { source, kind, eventName } = newOrderEvent(1)
    const headers = { traceparent: toHeader('b'), tracestate: 'vendor=1' }
    const event = await t.as('admin').post('/events', { source, kind, eventName }, headers)
    expect(event.status).toBe(201)
    expect(event.body).not.toHaveProperty('trace')
    await t.as('admin').post('/events', { source, kind, eventName })
    await runDueJobs(t.tenant)
    expect(receiver.deliveries.map(({ headers }) => headers.traceparent)).toEqual([toHeader('b'), undefined])
    expect(receiver.deliveries[0]!.body).not.toHaveProperty('trace')
    expect((await t.as('admin').get('/events?kind=order')).body[0]).not.toHaveProperty('trace')
  })

  test('writes of several traces that share a commit keep their own', async () => {
    const events = ['c', 'd', 'e', undefined].map((letter) =>
      t.as('admin').post('/events', newOrderEvent(2), letter ? { traceparent: toHeader(letter) } : {}),
    )
    const ids = (await Promise.all(events)).map(({ body }) => body._id)
    const rows = await t.tenant.db.query(
      `select _id, trace from events where _id in (${ids.map(() => '?').join(', ')})`,
      ids,
    )
    const traces = new Map(rows.map(([id, trace]) => [id, trace]))
    expect(ids.map((id) => traces.get(id))).toEqual([toHeader('c'), toHeader('d'), toHeader('e'), null])
  })

  test('a runner that a traced request has woken runs other jobs without its trace', async () => {
    const runner = new JobRunner().start()
    await t.as('admin').post('/events', newOrderEvent(3), { traceparent: toHeader('f') })
    await waitUntil(() => receiver.deliveries.some(({ headers }) => headers.traceparent === toHeader('f')))
    receiver.deliveries.length = 0
    await t.as('admin').post('/events', newOrderEvent(4))
    await waitUntil(() => receiver.deliveries.length)
    runner.stop()
    expect(receiver.deliveries.at(-1)!.headers.traceparent).toBeUndefined()
  })

  test('the calls of a lambda carry on the trace of its own request, also in a process that served another', async () => {
    const code = `export default async () => (await fetch('${receiver.url}/called')).status`
    const { body } = await t.as('admin').post('/lambdas', { name: 'caller', code })
    for (const letter of ['a', 'b', undefined]) {
      const headers = letter ? { traceparent: toHeader(letter) } : undefined
      expect((await t.as('admin').post(`/lambdas/${body._id}/execute`, {}, headers)).body.result).toBe(200)
      expect(receiver.deliveries.at(-1)!.headers.traceparent).toBe(letter ? toHeader(letter) : undefined!)
    }
  })

  test('work of a write runs in the trace of whoever called it', async () => {
    const trace = { traceId: 'a'.repeat(32), spanId: '1'.repeat(16), flags: 0 }
    const seen: unknown[] = []
    await Promise.all([
      runInTrace(trace, () => t.tenant.write(async () => void seen.push(currentTrace()))),
      t.tenant.write(async () => void seen.push(currentTrace())),
    ])
    expect(seen).toEqual([trace, undefined])
  })
})
