import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { Webhook } from 'standardwebhooks'
import { moveClock, now } from '../../src/core/clock'
import { removeOld as removeOldEvents } from '../../src/events/events'
import { emitAll } from '../../src/jobs/outbox'
import { runDueJobs } from '../../src/jobs/runner'
import { events } from '../../src/jobs/tables'
import { withLease } from '../../src/jobs/with-lease'
import { removeOld } from '../../src/plugins/deliveries'
import { type ReceivedDelivery, startWebhookReceiver } from '../fakes/webhook-receiver'
import { createTestTenant, statusAndCode, type TestResponse } from '../test-tenant'
import {
  allowPrivateNetwork,
  createOrderPlugin,
  denyPrivateNetwork,
  emitAndDeliver,
  exhaustOutboundCalls,
  newOrderEvent,
  times,
} from './fixtures'

setDefaultTimeout(30_000)

const HOUR_MS = 3_600_000
const receiver = startWebhookReceiver()
const { deliveries, url } = receiver
let h: Awaited<ReturnType<typeof createTestTenant>>
beforeAll(async () => {
  h = await createTestTenant()
})
beforeEach(() => {
  allowPrivateNetwork()
  deliveries.length = 0
  receiver.answer = () => 200
})
afterEach(async () => {
  moveClock()
  // Plugins of one test must not receive the events of the next.
  for (const { _id } of (await h.as('admin').get('/plugins')).body) await h.as('admin').delete(`/plugins/${_id}`)
})
afterAll(async () => {
  denyPrivateNetwork()
  await receiver.stop()
})

const listDeliveries = async ({ _id }: { _id: string }, query = '') =>
  (await h.as('admin').get(`/plugins/${_id}/deliveries?${query}`)).body
const getPlugin = async ({ _id }: { _id: string }) => (await h.as('admin').get(`/plugins/${_id}`)).body
const receivedNumbers = (path?: string) =>
  deliveries.filter((one) => !path || one.path === path).map(({ body }) => (body.metadata as { n: number }).n)
const verify = (secret: string, { text, headers }: ReceivedDelivery) => new Webhook(secret).verify(text, headers)

describe('the delivery of events to plugins', () => {
  test('a subscribed event is delivered as GET /events shows it, signed as a Standard Webhook', async () => {
    const { secret, ...made } = await createOrderPlugin(h.as('admin'), [`${url}/hooks`])
    await emitAndDeliver(h.tenant, newOrderEvent(1))
    const [one] = deliveries
    const [event] = (await h.as('admin').get('/events?kind=order')).body
    expect([deliveries.length, one!.body, one!.path]).toEqual([1, event, '/hooks'])
    expect(one!.headers).toMatchObject({ 'content-type': 'application/json', 'x-atoll-tenant': h.id })
    expect(verify(secret, one!)).toEqual(event)
    expect(() => verify(`whsec_${Buffer.alloc(32).toString('base64')}`, one!)).toThrow()
    expect(() => verify(secret, { ...one!, text: one!.text.replace('placed', 'PLACED') })).toThrow()
    const [delivery] = await listDeliveries(made)
    expect(delivery).toEqual({
      ...{
        _id: one!.id,
        event: event._id,
        source: 'shop',
        kind: 'order',
        eventName: 'placed',
        hookUrl: `${url}/hooks`,
      },
      ...{ state: 'delivered', attempts: 1, status: 200, durationMs: expect.any(Number), answer: '', error: null },
      ...{ nextAttempt: null, created: expect.any(String), updated: expect.any(String) },
    })
    expect((await getPlugin(made)).health).toMatchObject({ status: 'ok', lastError: null })
  })

  test('a subscription filters by source, kind and event name, and each address receives an event once', async () => {
    const hook = (path: string, more: object) => ({ hookUrl: `${url}${path}`, ...more })
    await h
      .as('admin')
      .post('/plugins', {
        name: 'choosy',
        subscribedEvents: [
          ...[hook('/all', {}), hook('/all', { source: '*' }), hook('/source', { source: 'shop' })],
          ...[hook('/kind', { kind: 'order' }), hook('/name', { eventName: 'paid' }), hook('/none', { source: 'sho' })],
          hook('/exact', { source: 'shop', kind: 'order', eventName: 'placed' }),
        ],
      })
    await emitAndDeliver(
      h.tenant,
      newOrderEvent(1),
      { ...newOrderEvent(2), eventName: 'paid' },
      { ...newOrderEvent(3), source: 'x', kind: 'y' },
    )
    const by = (path: string) => receivedNumbers(path)
    expect(['/all', '/source', '/kind', '/name', '/none', '/exact'].map(by)).toEqual([
      [1, 2, 3],
      [1, 2],
      [1, 2],
      [2],
      [],
      [1],
    ])
    expect(new Set(deliveries.map(({ id }) => id)).size).toBe(deliveries.length)
  })

  test('a plugin may subscribe to events of the platform itself, such as user-created', async () => {
    const subscribedEvents = [{ source: 'accounts', eventName: 'user-created', hookUrl: url }]
    await h.as('admin').post('/plugins', { name: 'greeter', subscribedEvents })
    await h.as('admin').post('/users', { username: 'newcomer' })
    await runDueJobs(h.tenant)
    expect(deliveries.map(({ body }) => body.metadata)).toEqual([expect.objectContaining({ username: 'newcomer' })])
  })

  test('each address receives the events in the order in which they were emitted', async () => {
    await createOrderPlugin(h.as('admin'), [`${url}/a`, `${url}/b`])
    await createOrderPlugin(h.as('admin'), [`${url}/c`])
    receiver.answer = () => Bun.sleep(Math.random() * 2).then(() => 200)
    for (const n of times(5))
      await h.tenant.write((tx) =>
        emitAll(
          h.tenant,
          tx,
          times(40).map((m) => newOrderEvent(n * 40 + m)),
        ),
      )
    await runDueJobs(h.tenant)
    for (const path of ['/a', '/b', '/c']) expect(receivedNumbers(path)).toEqual(times(200))
  })

  test('a subscriber receives its events while twenty other servers do not answer', async () => {
    const unanswered: (() => void)[] = []
    const silent = times(20).map(() =>
      Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        idleTimeout: 0,
        fetch: () => new Promise<Response>((resolve) => unanswered.push(() => resolve(new Response()))),
      }),
    )
    for (const { url: address } of silent) await createOrderPlugin(h.as('admin'), [address.href])
    await createOrderPlugin(h.as('admin'), [`${url}/good`])
    const delivering = emitAndDeliver(h.tenant, newOrderEvent(1), newOrderEvent(2))
    while (receivedNumbers('/good').length < 2) await Bun.sleep(5)
    // All twenty have begun and none has ended: the subscriber did not wait for their time-outs.
    while (unanswered.length < 20) await Bun.sleep(5)
    let ended = false
    delivering.then(() => {
      ended = true
    })
    while (!ended) {
      for (const release of unanswered.splice(0)) release()
      await Bun.sleep(5)
    }
    await Promise.all(silent.map((server) => server.stop(true)))
  })

  test('a plugin receives only events that were emitted while it was active and subscribed', async () => {
    const admin = h.as('admin')
    await emitAndDeliver(h.tenant, newOrderEvent(1))
    const made = await createOrderPlugin(admin, [`${url}/a`])
    await emitAndDeliver(h.tenant, newOrderEvent(2))
    await admin.put(`/plugins/${made._id}`, { active: false })
    await emitAndDeliver(h.tenant, newOrderEvent(3))
    await admin.put(`/plugins/${made._id}`, { active: true })
    await emitAndDeliver(h.tenant, newOrderEvent(4))
    const { subscribedEvents } = await getPlugin(made)
    await admin.put(`/plugins/${made._id}`, {
      subscribedEvents: [...subscribedEvents, { source: 'shop', hookUrl: `${url}/b` }],
    })
    await emitAndDeliver(h.tenant, newOrderEvent(5))
    await admin.put(`/plugins/${made._id}`, { subscribedEvents: [{ source: 'shop', hookUrl: `${url}/b` }] })
    await emitAndDeliver(h.tenant, newOrderEvent(6))
    await admin.delete(`/plugins/${made._id}`)
    await emitAndDeliver(h.tenant, newOrderEvent(7))
    expect([receivedNumbers('/a'), receivedNumbers('/b')]).toEqual([
      [2, 4, 5],
      [5, 6],
    ])
  })

  test('deliveries that wait for a plugin are canceled when it is deactivated', async () => {
    const made = await createOrderPlugin(h.as('admin'), [url])
    receiver.answer = () => 500
    await emitAndDeliver(h.tenant, newOrderEvent(1), newOrderEvent(2))
    await h.as('admin').put(`/plugins/${made._id}`, { active: false })
    moveClock(now() + HOUR_MS)
    await runDueJobs(h.tenant)
    expect(receivedNumbers()).toEqual([1])
    expect((await listDeliveries(made)).map(({ state }: { state: string }) => state)).toEqual(['canceled', 'canceled'])
    expect(await h.tenant.db.query("select 1 from jobs where kind = 'delivery'")).toEqual([])
  })
})

describe('failing deliveries', () => {
  test('a failed delivery is retried with the same id, and later events wait for it', async () => {
    const { secret, ...made } = await createOrderPlugin(h.as('admin'), [url])
    receiver.answer = () => new Response('Not now!', { status: 503 })
    await emitAndDeliver(h.tenant, newOrderEvent(1), newOrderEvent(2))
    const [failing] = await listDeliveries(made)
    expect(failing).toMatchObject({
      state: 'failing',
      attempts: 1,
      status: 503,
      answer: 'Not now!',
      error: 'The endpoint answered 503.',
    })
    expect(Date.parse(failing.nextAttempt) - now()).toBeWithin(500, 1_251)
    expect((await getPlugin(made)).health).toMatchObject({ status: 'failing', lastError: 'The endpoint answered 503.' })
    receiver.answer = () => 204
    moveClock(now() + 1_300)
    await runDueJobs(h.tenant)
    expect(receivedNumbers()).toEqual([1, 1, 2])
    expect(new Set(deliveries.map(({ id }) => id)).size).toBe(2)
    expect(await listDeliveries(made, 'sort=created')).toMatchObject([
      { state: 'delivered', attempts: 2, status: 204, error: null, nextAttempt: null },
      { state: 'delivered', attempts: 1 },
    ])
    expect((await getPlugin(made)).health.status).toBe('ok')
    expect(verify(secret, deliveries[0]!)).toBeTruthy()
  })

  test('a delivery fails when it is redirected, cannot connect or is not allowed to call the address', async () => {
    const made = await createOrderPlugin(h.as('admin'), [`${url}/a`, 'http://127.0.0.1:1/', 'http://nowhere.invalid/'])
    receiver.answer = () => Response.redirect(`${url}/elsewhere`, 302)
    await emitAndDeliver(h.tenant, newOrderEvent(1))
    const errors = (await listDeliveries(made)).map(({ error }: { error: string }) => error).sort()
    expect(errors).toEqual([...Array(2).fill('The connection was refused or closed.'), 'The endpoint answered 302.'])
    expect(deliveries.map(({ path }) => path)).toEqual(['/a'])
    denyPrivateNetwork()
    moveClock(now() + 2_000)
    await runDueJobs(h.tenant)
    expect(deliveries).toHaveLength(1)
    expect((await listDeliveries(made)).map(({ error }: { error: string }) => error)).toEqual(
      Array(3).fill('Requests to this address are not allowed.'),
    )
  })

  test('a delivery is retried after the Retry-After of a 429 answer, at most an hour later', async () => {
    const made = await createOrderPlugin(h.as('admin'), [url])
    const after = (seconds: number) => () =>
      new Response(null, { status: 429, headers: { 'retry-after': `${seconds}` } })
    for (const [seconds, ms] of [
      [120, 120_000],
      [1e9, HOUR_MS],
    ] as const) {
      receiver.answer = after(seconds)
      await emitAndDeliver(h.tenant, ...(seconds === 120 ? [newOrderEvent(1)] : []))
      const [{ nextAttempt }] = await listDeliveries(made)
      expect(Date.parse(nextAttempt) - now()).toBeWithin(ms - 2_000, ms + 1)
      moveClock(Date.parse(nextAttempt))
    }
  })

  test('a delivery is retried at the date that a Retry-After names', async () => {
    const made = await createOrderPlugin(h.as('admin'), [url])
    const date = new Date(now() + 600_000).toUTCString()
    receiver.answer = () => new Response(null, { status: 503, headers: { 'retry-after': date } })
    await emitAndDeliver(h.tenant, newOrderEvent(1))
    const [{ nextAttempt }] = await listDeliveries(made)
    expect(Date.parse(nextAttempt) - Date.parse(date)).toBeWithin(-1_000, 1_000)
  })

  test('a delivery is dead after three days, which emits a delivery-failed event, and can be replayed', async () => {
    const admin = h.as('admin')
    const made = await createOrderPlugin(admin, [url])
    receiver.answer = () => 500
    await emitAndDeliver(h.tenant, newOrderEvent(1))
    moveClock(now() + 71 * HOUR_MS)
    await runDueJobs(h.tenant)
    expect((await listDeliveries(made))[0]).toMatchObject({ state: 'failing', attempts: 2 })
    moveClock(now() + 2 * HOUR_MS)
    await runDueJobs(h.tenant)
    const [dead] = await listDeliveries(made)
    expect(dead).toMatchObject({ state: 'dead', attempts: 3, nextAttempt: null })
    const [event, ...furtherEvents] = (await admin.get('/events?source=plugins')).body
    expect([event, furtherEvents]).toEqual([
      expect.objectContaining({
        ...{ kind: 'plugin', eventName: 'delivery-failed', description: 'The endpoint answered 500.' },
        metadata: { plugin: made._id, delivery: dead._id, event: dead.event, hookUrl: url, status: 500 },
      }),
      [],
    ])
    moveClock(now() + 100 * HOUR_MS)
    expect(await runDueJobs(h.tenant)).toBe(0)

    receiver.answer = () => 200
    const replayed = await admin.post(`/plugins/${made._id}/deliveries/${dead._id}/replay`)
    expect([replayed.status, replayed.body.state]).toEqual([200, 'waiting'])
    await runDueJobs(h.tenant)
    expect((await listDeliveries(made))[0]).toMatchObject({ state: 'delivered', attempts: 4, status: 200 })
    // A delivered event may be replayed, too.
    await admin.post(`/plugins/${made._id}/deliveries/${dead._id}/replay`)
    await runDueJobs(h.tenant)
    expect(new Set(deliveries.map(({ id }) => id))).toEqual(new Set([dead._id]))
    expect(deliveries).toHaveLength(5)
  })

  test('the jobs of many subscribers do not copy the metadata of their event, which each receives whole', async () => {
    const hookUrls = times(20).map((n) => `${url}/${n}`)
    await createOrderPlugin(h.as('admin'), hookUrls)
    receiver.answer = () => 500
    const metadata = { n: 1, text: 'x'.repeat(60_000) }
    await emitAndDeliver(h.tenant, { ...newOrderEvent(1), metadata })
    expect(deliveries.map(({ body }) => body.metadata)).toEqual(hookUrls.map(() => metadata))
    const jobs = await h.tenant.db.query("select payload from jobs where kind = 'delivery' and state = 'waiting'")
    expect(jobs).toHaveLength(20)
    expect(JSON.stringify(jobs).length).toBeLessThan(metadata.text.length)
  })

  test('a delivery is dead once its event was removed, and its replay is 409 EVENT_NOT_KEPT', async () => {
    const admin = h.as('admin')
    const made = await createOrderPlugin(admin, [url])
    receiver.answer = () => 500
    // The newest event is never removed.
    await emitAndDeliver(h.tenant, newOrderEvent(1), { ...newOrderEvent(2), source: 'other' })
    await h.tenant.write((tx) => tx.delete(events).where(eq(events.source, 'shop')))
    moveClock(now() + HOUR_MS)
    await runDueJobs(h.tenant)
    const [dead] = await listDeliveries(made)
    expect(dead).toMatchObject({ state: 'dead', attempts: 2, error: 'The event was too old and has been removed.' })
    expect(deliveries).toHaveLength(1)
    expect(statusAndCode(await admin.post(`/plugins/${made._id}/deliveries/${dead._id}/replay`))).toEqual([
      409,
      'EVENT_NOT_KEPT',
    ])
  })

  test('a failed delivery of a delivery-failed event emits no further delivery-failed event', async () => {
    const subscribedEvents = [
      { source: 'plugins', hookUrl: url },
      { source: 'shop', hookUrl: url },
    ]
    const { body } = await h.as('admin').post('/plugins', { name: 'unlucky', subscribedEvents })
    const before = (await h.as('admin').get('/events/count?source=plugins')).body.count
    receiver.answer = () => 500
    await emitAndDeliver(h.tenant, newOrderEvent(1))
    for (const _ of times(4)) {
      moveClock(now() + 73 * HOUR_MS)
      await runDueJobs(h.tenant)
    }
    expect(
      (await listDeliveries(body)).map(({ state, source }: Record<string, string>) => [source, state]).sort(),
    ).toEqual([
      ['plugins', 'dead'],
      ['shop', 'dead'],
    ])
    expect((await h.as('admin').get('/events/count?source=plugins')).body.count - before).toBe(1)
  })

  test('an endpoint that answers 410 has its subscription deactivated until an admin activates it again', async () => {
    const admin = h.as('admin')
    const made = await createOrderPlugin(admin, [`${url}/gone`, `${url}/here`])
    receiver.answer = ({ path }) => (path === '/gone' ? 410 : 200)
    await emitAndDeliver(h.tenant, newOrderEvent(1), newOrderEvent(2), newOrderEvent(3))
    await emitAndDeliver(h.tenant, newOrderEvent(4))
    expect([receivedNumbers('/gone'), receivedNumbers('/here')]).toEqual([[1], [1, 2, 3, 4]])
    const { subscribedEvents } = await getPlugin(made)
    expect(subscribedEvents.map(({ active }: { active: boolean }) => active)).toEqual([false, true])
    expect((await listDeliveries(made, 'state=dead')).map(({ status }: { status: number }) => status)).toEqual([410])
    const [dead] = await listDeliveries(made, 'state=dead')
    expect(statusAndCode(await admin.post(`/plugins/${made._id}/deliveries/${dead._id}/replay`))).toEqual([
      409,
      'NOT_SUBSCRIBED',
    ])
    // Sending the plugin back as it was read changes nothing; `active: true` resumes the subscription.
    await admin.put(`/plugins/${made._id}`, { subscribedEvents })
    await emitAndDeliver(h.tenant, newOrderEvent(5))
    receiver.answer = () => 200
    await admin.put(`/plugins/${made._id}`, {
      subscribedEvents: subscribedEvents.map((one: object) => ({ ...one, active: true })),
    })
    await emitAndDeliver(h.tenant, newOrderEvent(6))
    expect(receivedNumbers('/gone')).toEqual([1, 6])
  })
})

describe('a delivery while the tenant has too many outbound calls', () => {
  test('a delivery without a free outbound call counts no attempt, keeps the plugin healthy and is made seconds later', async () => {
    const made = await createOrderPlugin(h.as('admin'), [url])
    await emitAndDeliver(h.tenant, newOrderEvent(1))
    const release = exhaustOutboundCalls(h.tenant, url)
    await emitAndDeliver(h.tenant, newOrderEvent(2)).finally(release)
    expect(receivedNumbers()).toEqual([1])
    expect((await getPlugin(made)).health).toMatchObject({ status: 'ok', lastError: null, lastErrorAt: null })
    expect(await listDeliveries(made)).toMatchObject([{ state: 'delivered', attempts: 1 }])
    moveClock(now() + 10_000)
    await runDueJobs(h.tenant)
    expect(receivedNumbers()).toEqual([1, 2])
    expect((await listDeliveries(made))[0]).toMatchObject({ state: 'delivered', attempts: 1 })
  })

  test('a postponed retry keeps its attempts and its error, and shows its next attempt', async () => {
    const made = await createOrderPlugin(h.as('admin'), [url])
    receiver.answer = () => 500
    await emitAndDeliver(h.tenant, newOrderEvent(1))
    const [before] = await listDeliveries(made)
    const release = exhaustOutboundCalls(h.tenant, url)
    moveClock(Date.parse(before.nextAttempt))
    await runDueJobs(h.tenant).finally(release)
    const [after] = await listDeliveries(made)
    expect(after).toEqual({ ...before, nextAttempt: expect.any(String) })
    expect(Date.parse(after.nextAttempt)).toBeGreaterThan(now())
    expect(await h.tenant.db.query('select attempts from jobs where _id = ?', [before._id])).toEqual([[1]])
  })
})

describe('the signature of deliveries', () => {
  test('deliveries are signed with both the old and the new secret for a day after a rotation, then with the new one', async () => {
    const { secret, ...made } = await createOrderPlugin(h.as('admin'), [url])
    const { body } = await h.as('admin').post(`/plugins/${made._id}/rotate-secret`)
    await emitAndDeliver(h.tenant, newOrderEvent(1))
    expect([verify(secret, deliveries[0]!), verify(body.secret, deliveries[0]!)]).toEqual([
      deliveries[0]!.body,
      deliveries[0]!.body,
    ])
    moveClock(now() + 24 * HOUR_MS + 1_000)
    await emitAndDeliver(h.tenant, newOrderEvent(2))
    expect(deliveries[1]!.headers['webhook-signature']!.split(' ')).toHaveLength(1)
    await withLease(h.tenant, 'test', removeOld)
    expect(await h.tenant.db.query("select name from sealed where purpose = 'plugin'")).toEqual([['secret']])
    moveClock()
    await emitAndDeliver(h.tenant, newOrderEvent(3))
    expect(verify(body.secret, deliveries[2]!)).toEqual(deliveries[2]!.body)
    expect(() => verify(secret, deliveries[2]!)).toThrow()
  })
})

describe('the delivery log of a plugin', () => {
  const names = ({ body }: TestResponse) => body.map(({ eventName }: { eventName: string }) => eventName)

  test('GET /plugins/:id/deliveries sorts, filters and pages through the deliveries of a plugin', async () => {
    const admin = h.as('admin')
    const made = await createOrderPlugin(admin, [url])
    await emitAndDeliver(h.tenant, ...['a', 'b', 'c', 'd'].map((eventName, n) => ({ ...newOrderEvent(n), eventName })))
    const path = `/plugins/${made._id}/deliveries`
    const page = await admin.get(`${path}?sort=eventName&limit=2&count=true`)
    expect([names(page), page.headers.get('x-total-count')]).toEqual([['a', 'b'], '4'])
    expect(page.headers.get('link')).toContain('%24after=')
    expect(names(await admin.get(`${path}?eventName=b,d&sort=-eventName`))).toEqual(['d', 'b'])
    expect(names(await admin.get(`${path}?event=${page.body[0].event}`))).toEqual(['a'])
    for (const none of ['state=dead', 'source=x', 'kind=x', 'eventName=x', 'event=x'])
      expect(names(await admin.get(`${path}?${none}`)), none).toEqual([])
    expect(names(await admin.get(`${path}?state=&source=undefined&kind=order`))).toHaveLength(4)
    for (const wrong of ['state=odd', 'sort=answer', 'limit=-1'])
      expect(statusAndCode(await admin.get(`${path}?${wrong}`)), wrong).toEqual([400, 'INVALID_INPUT'])
  })

  test('the delivery log stores the first 1,024 bytes of an answer as text, whatever the endpoint sends', async () => {
    const made = await createOrderPlugin(h.as('admin'), [url])
    const answers: [string | Uint8Array<ArrayBuffer>, string][] = [
      ['x'.repeat(5_000_000), 'x'.repeat(1_024)],
      [new Uint8Array([0xff, 0x00, 0x41]), '\ufffdA'],
      [`${'x'.repeat(1_023)}ä`, `${'x'.repeat(1_023)}\ufffd`],
    ]
    for (const [n, [answer, storedAnswer]] of answers.entries()) {
      receiver.answer = () => new Response(answer)
      await emitAndDeliver(h.tenant, newOrderEvent(n))
      expect((await listDeliveries(made, 'limit=1'))[0]).toMatchObject({
        state: 'delivered',
        status: 200,
        answer: storedAnswer,
      })
    }
  })

  test('housekeeping removes deliveries after 30 days or with their plugin, and a replay without its event is 409 EVENT_NOT_KEPT', async () => {
    const [made, deletedPlugin] = [
      await createOrderPlugin(h.as('admin'), [url]),
      await createOrderPlugin(h.as('admin'), [url]),
    ]
    const { tenant } = h
    await emitAndDeliver(tenant, newOrderEvent(1))
    moveClock(now() + 20 * 24 * HOUR_MS)
    await emitAndDeliver(tenant, newOrderEvent(2))
    await h.as('admin').delete(`/plugins/${deletedPlugin._id}`)
    await withLease(tenant, 'test', removeOld)
    expect(await tenant.db.query('select distinct plugin from deliveries')).toEqual([[made._id]])
    expect(await listDeliveries(made)).toHaveLength(2)
    moveClock(now() + 11 * 24 * HOUR_MS)
    await withLease(tenant, 'test', removeOld)
    expect(await listDeliveries(made)).toHaveLength(1)
    // A delivery whose event was removed cannot be replayed.
    await emitAndDeliver(tenant, newOrderEvent(3))
    moveClock(now() + 100 * 24 * HOUR_MS)
    await emitAndDeliver(tenant, { ...newOrderEvent(4), source: 'other' })
    await withLease(tenant, 'test', removeOldEvents)
    const [{ _id }] = await listDeliveries(made)
    expect(statusAndCode(await h.as('admin').post(`/plugins/${made._id}/deliveries/${_id}/replay`))).toEqual([
      409,
      'EVENT_NOT_KEPT',
    ])
  })

  test('deliveries of one plugin are neither shown nor replayed by another plugin, nor made for another tenant', async () => {
    const [one, otherPlugin] = [
      await createOrderPlugin(h.as('admin'), [url]),
      await createOrderPlugin(h.as('admin'), []),
    ]
    await emitAndDeliver(h.tenant, newOrderEvent(1))
    const [{ _id }] = await listDeliveries(one)
    expect(await listDeliveries(otherPlugin)).toEqual([])
    for (const path of [
      `/plugins/${otherPlugin._id}/deliveries/${_id}/replay`,
      `/plugins/${one._id}/deliveries/x/replay`,
    ])
      expect(statusAndCode(await h.as('admin').post(path))).toEqual([404, 'DELIVERY_NOT_FOUND'])
    const otherTenant = await createTestTenant()
    await createOrderPlugin(otherTenant.as('admin'), [`${url}/elsewhere`])
    await emitAndDeliver(h.tenant, newOrderEvent(2))
    await emitAndDeliver(otherTenant.tenant, newOrderEvent(3))
    expect([receivedNumbers('/'), receivedNumbers('/elsewhere')]).toEqual([[1, 2], [3]])
  })
})
