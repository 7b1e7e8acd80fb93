import { afterAll, afterEach, beforeAll, expect, spyOn, test } from 'bun:test'
import { moveClock, now, toIsoString } from '../../../src/core/clock'
import { logOutput } from '../../../src/core/log'
import { runDueJobs } from '../../../src/jobs/runner'
import { withLease } from '../../../src/jobs/with-lease'
import { removeOld } from '../../../src/payments/webhooks/provider-events'
import { startPaypal } from '../../fakes/vendors/paypal'
import { startStripe } from '../../fakes/vendors/stripe'
import { allowPrivateNetwork, denyPrivateNetwork, times } from '../../plugins/fixtures'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import {
  createConnection,
  createPendingSubscription,
  deliver,
  findSubscription,
  invoicesOf,
  metadataOf,
} from './webhook-fixtures'

const [testTenant, otherTenant] = [await createTestTenant(), await createTestTenant()]
const [vendor, paypal] = [await startStripe(), await startPaypal()]
const admin = testTenant.as('admin')
beforeAll(async () => {
  allowPrivateNetwork()
  await createConnection(testTenant, vendor.connection())
  await createConnection(otherTenant, vendor.connection())
  await createConnection(testTenant, paypal.connection())
})
afterEach(() => moveClock())
afterAll(async () => {
  denyPrivateNetwork()
  await vendor.stop()
  await paypal.stop()
})

const seconds = () => Math.floor(now() / 1000)
const send = (event: object, target = testTenant) => deliver(target, 'stripe', vendor.signEvent(event))
const statusOf = async (row: Parameters<typeof findSubscription>[1]) => (await findSubscription(testTenant, row)).status

let subscriptions = 0
/** Creates a pending subscription, and makers of the events and invoices that Stripe sends for it. */
async function createStripeSubscription(more: object = {}, target = testTenant) {
  const row = await createPendingSubscription(target, { providerKind: 'stripe', ...more })
  const id = `sub_${target.id}_${subscriptions++}`
  const period = { current_period_start: seconds(), current_period_end: seconds() + 2_592_000 }
  const object = { id, object: 'subscription', status: 'active', metadata: metadataOf(target, row), ...period }
  const event = (type: string, to: object = {}, created = seconds()) =>
    vendor.happened(`customer.subscription.${type}`, { ...object, ...to }, { created })
  const invoice = (type: string, invoice: string, created = seconds()) =>
    vendor.happened(
      `invoice.${type}`,
      {
        id: invoice,
        object: 'invoice',
        amount_due: 2000,
        amount_paid: type === 'paid' ? 2000 : 0,
        currency: 'usd',
        subscription: id,
        lines: { data: [] },
      },
      { created },
    )
  return { row, id, event, invoice }
}

test('GET /payments/events lists events to admins of the tenant only, and only GET /payments/events/:id returns the body', async () => {
  const { row, id, event } = await createStripeSubscription()
  const sent = event('created')
  expect((await send(sent)).body).toEqual({ status: 'processed' })
  const [first] = (await admin.get(`/payments/events?subscriptionId=${row._id}`)).body
  expect(first).toEqual({
    ...{ _id: expect.any(String), providerKind: 'stripe', eventId: sent.id, type: 'customer.subscription.created' },
    ...{ status: 'processed', outcome: null, sourceId: expect.any(String), subscriptionId: row._id },
    ...{ externalSubscriptionId: id, attempts: 1, nextAttempt: null, occurredAt: toIsoString(sent.created * 1000) },
    ...{ created: expect.any(String), updated: expect.any(String) },
  })
  expect((await admin.get(`/payments/events/${first._id}`)).body).toEqual({ ...first, body: sent })
  expect(
    (await admin.get('/payments/events?status=processed&providerKind=stripe&type=customer.subscription.created')).body,
  ).toContainEqual(first)
  expect((await admin.get('/payments/events?status=parked,failed')).body).not.toContainEqual(first)
  for (const path of ['/payments/events', `/payments/events/${first._id}`]) {
    expect(statusAndCode(await testTenant.as('user').get(path))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await testTenant.anonymous.get(path))).toEqual([401, 'UNAUTHENTICATED'])
  }
  expect(statusAndCode(await testTenant.as('user').post(`/payments/events/${first._id}/replay`))).toEqual([
    403,
    'FORBIDDEN',
  ])
  for (const one of ['x', '%00'])
    expect(statusAndCode(await admin.get(`/payments/events/${one}`))).toEqual([404, 'PROVIDER_EVENT_NOT_FOUND'])
  expect((await otherTenant.as('admin').get('/payments/events')).body).toEqual([])
  expect(statusAndCode(await otherTenant.as('admin').post(`/payments/events/${first._id}/replay`))).toEqual([
    404,
    'PROVIDER_EVENT_NOT_FOUND',
  ])
})

test('an event is processed once, even when it arrives twenty times at once, and repetitions are duplicates', async () => {
  const { row, event, invoice } = await createStripeSubscription()
  const created = event('created')
  const answers = await Promise.all(times(20).map(() => send(created)))
  expect(answers.map(({ body }) => body.status).sort()).toEqual([...times(19).map(() => 'duplicate'), 'processed'])
  expect((await send({ ...event('deleted'), id: created.id })).body).toEqual({ status: 'duplicate' })
  expect(await statusOf(row)).toBe('active')
  const paid = invoice('paid', 'in_twice')
  for (const _ of [1, 2]) await send(paid)
  // Another event of the same invoice stores no second one.
  await send(invoice('paid', 'in_twice'))
  expect(await invoicesOf(testTenant, row)).toEqual([['in_twice', 'paid', 2000, 'USD']])
  const reported = (await admin.get('/events?source=payments&eventName=invoice-paid&limit=1000')).body
  expect(
    reported.filter(
      (one: { metadata: { externalInvoiceId: string } }) => one.metadata.externalInvoiceId === 'in_twice',
    ),
  ).toHaveLength(1)
  // Another tenant does not know the subscription.
  expect((await send(created, otherTenant)).body).toEqual({ status: 'ignored' })
})

test('concurrent events of many subscriptions are all applied', async () => {
  const all = await Promise.all(times(20).map(() => createStripeSubscription()))
  const events = all.flatMap(({ event, invoice, id }) => [event('created'), invoice('paid', `in_${id}`)])
  const answers = await Promise.all(events.map((event) => send(event)))
  // An invoice that arrives before its subscription is known is parked.
  expect(answers.every(({ body }) => ['processed', 'parked'].includes(body.status))).toBe(true)
  moveClock(now() + 10_000)
  await runDueJobs(testTenant.tenant)
  for (const { row, id } of all)
    expect([await statusOf(row), await invoicesOf(testTenant, row)]).toEqual([
      'active',
      [[`in_${id}`, 'paid', 2000, 'USD']],
    ])
})

test('an event older than the last applied one changes nothing, but its invoice is stored', async () => {
  const { row, event, invoice } = await createStripeSubscription()
  const at = seconds() - 1000
  await send(event('created', {}, at))
  await send(event('deleted', {}, at + 100))
  for (const late of [
    event('updated', {}, at + 50),
    event('created', {}, at + 200),
    invoice('paid', 'in_late', at + 60),
  ])
    expect((await send(late)).body).toEqual({ status: 'processed' })
  expect(await statusOf(row)).toBe('canceled')
  expect(await invoicesOf(testTenant, row)).toEqual([['in_late', 'paid', 2000, 'USD']])
  const living = await createStripeSubscription()
  await send(living.event('created', {}, at))
  await send(living.event('updated', { cancel_at_period_end: true }, at + 100))
  await send(living.event('updated', { cancel_at_period_end: false, status: 'past_due' }, at + 99))
  expect(await findSubscription(testTenant, living.row)).toMatchObject({ status: 'active', cancelAtPeriodEnd: true })
  const [first] = (await admin.get(`/payments/events?subscriptionId=${living.row._id}`)).body
  expect(first).toMatchObject({ status: 'processed', outcome: expect.stringContaining('later') })
})

test('an open invoice becomes paid or void, and no later event changes that', async () => {
  const { row, event, invoice } = await createStripeSubscription()
  await send(event('created'))
  await send(invoice('payment_failed', 'in_a'))
  await send(invoice('paid', 'in_a'))
  for (const type of ['voided', 'payment_failed']) await send(invoice(type, 'in_a'))
  await send(invoice('voided', 'in_b'))
  await send(invoice('paid', 'in_b'))
  const all = Object.fromEntries((await invoicesOf(testTenant, row)).map(([id, status]) => [id, status]))
  expect(all).toEqual({ in_a: 'paid', in_b: 'void' })
})

test('an event of an unknown subscription is parked, and applied when its subscription appears, even after a month', async () => {
  const { row, id, event, invoice } = await createStripeSubscription()
  const unknown = await createStripeSubscription()
  for (const early of [invoice('paid', 'in_early'), unknown.invoice('paid', 'in_never')])
    expect((await send(early)).body).toEqual({ status: 'parked' })
  const parked = (await admin.get('/payments/events?status=parked')).body
  expect(parked.map((one: { externalSubscriptionId: string }) => one.externalSubscriptionId)).toContain(id)
  expect(parked.every((one: { nextAttempt: string | null }) => one.nextAttempt)).toBe(true)
  await runDueJobs(testTenant.tenant)
  expect(await invoicesOf(testTenant, row)).toEqual([])
  await send(event('created'))
  moveClock(now() + 10_000)
  await runDueJobs(testTenant.tenant)
  expect(await invoicesOf(testTenant, row)).toEqual([['in_early', 'paid', 2000, 'USD']])
  const still = (await admin.get('/payments/events?status=parked')).body
  expect(still.map((one: { externalSubscriptionId: string }) => one.externalSubscriptionId)).toEqual([unknown.id])
  // After a month it is no longer retried, but still applied when its subscription appears.
  moveClock(now() + 40 * 86_400_000)
  await runDueJobs(testTenant.tenant)
  await runDueJobs(testTenant.tenant)
  const [old] = (await admin.get('/payments/events?status=parked')).body
  expect(old.nextAttempt).toBeNull()
  await send(unknown.event('created'))
  moveClock(now() + 10_000)
  await runDueJobs(testTenant.tenant)
  expect(await invoicesOf(testTenant, unknown.row)).toEqual([['in_never', 'paid', 2000, 'USD']])
})

test('a parked event is retried ever more rarely: after a 60th of its age, and at least once an hour', async () => {
  const own = await createTestTenant()
  await createConnection(own, vendor.connection())
  const { id, invoice } = await createStripeSubscription({}, own)
  expect((await send(invoice('paid', 'in_waiting'), own)).body).toEqual({ status: 'parked' })
  for (const [hours, minutes] of [
    [2, 2],
    [5, 5],
    [100, 60],
  ] as const) {
    moveClock(Date.now() + hours * 3_600_000 + 7_001)
    await runDueJobs(own.tenant)
    const parked = (await own.as('admin').get('/payments/events?status=parked')).body
    const { nextAttempt } = parked.find((one: { externalSubscriptionId: string }) => one.externalSubscriptionId === id)
    const delay = Date.parse(nextAttempt) - now()
    expect([delay > (minutes - 0.5) * 60_000, delay < (minutes + 0.5) * 60_000]).toEqual([true, true])
  }
})

test('an event that arrives before its checkout was answered is parked and applied afterwards', async () => {
  paypal.plan('P-PRO', '20.00')
  const prices = { monthlyPrice: 20, yearlyPrice: 200 }
  const externalIds = { paypal: { monthlyPlanId: 'P-PRO' } }
  const plan = (await admin.post('/plans', { name: 'Pro', ...prices, externalIds })).body
  const [{ _id: paymentSourceId }] = (await admin.get('/integration-sources?kind=paypal')).body
  await admin.put('/payments/configuration', { metadata: { isEnabled: true, paymentSourceId } })

  const { promise: late, resolve: answer } = Promise.withResolvers<void>()
  paypal.own.failWhen = ({ path }) => (path.endsWith('/subscriptions') ? { late } : undefined)
  const checkout = testTenant.as('user').post('/checkout', { planId: plan._id, billingCycle: 'monthly' })
  while (!paypal.subscriptions.size) await Bun.sleep(1)
  const [id] = paypal.subscriptions.keys()
  paypal.approve(id!)
  for (const event of paypal.events.splice(0)) {
    // The event lacks the metadata that PayPal got from us.
    const { custom: _, custom_id: __, ...resource } = event.resource
    const answer = await deliver(testTenant, 'paypal', paypal.signEvent({ ...event, resource }))
    expect(answer.body).toEqual({ status: 'parked' })
  }
  answer()
  const { status, body } = await checkout
  expect(status).toBe(200)
  moveClock(now() + 10_000)
  await runDueJobs(testTenant.tenant)
  const found = await testTenant.as('user').get(`/subscriptions/${body.subscriptionId}`)
  expect(found.body).toMatchObject({ status: 'active', providerKind: 'paypal', externalSubscriptionId: id })
  expect(await invoicesOf(testTenant, found.body)).toHaveLength(1)
  expect(paypal.flaws).toEqual([])
})

test('an event that fails is stored, reported once, retried, and applied once', async () => {
  const { row, event } = await createStripeSubscription()
  const { tenant } = testTenant.tenant
  // Corrupt metadata stands for any internal error.
  const spoil = (text: string) =>
    testTenant.tenant.write((tx) => tx.query('update subscriptions set metadata = ? where _id = ?', [text, row._id]))
  await spoil('{broken')
  const created = event('created')
  const lines: string[] = []
  const log = spyOn(logOutput, 'write').mockImplementation((line) => void lines.push(line))
  try {
    for (const _ of [1, 2]) expect(statusAndCode(await send(created))).toEqual([500, 'INTERNAL'])
    const [failed, ...more] = (await admin.get('/payments/events?status=failed')).body
    expect([failed.eventId, failed.attempts, more]).toEqual([created.id, 2, []])
    expect((await admin.post(`/payments/events/${failed._id}/replay`)).body.status).toBe('failed')
    expect(lines.some((line) => line.includes('WEBHOOK_FAILED') && line.includes(tenant))).toBe(true)
    const reported = (await admin.get('/events?source=payments&eventName=webhook-failed')).body
    expect(
      reported.filter((one: { metadata: { eventId?: string } }) => one.metadata.eventId === created.id),
    ).toHaveLength(1)
    await spoil('{}')
    moveClock(now() + 60_000)
    await runDueJobs(testTenant.tenant)
  } finally {
    log.mockRestore()
  }
  expect(await statusOf(row)).toBe('active')
  expect((await admin.get('/payments/events?status=failed')).body).toEqual([])
  expect((await send(created)).body).toEqual({ status: 'duplicate' })
})

test('a replay of processed events by an admin has no second effect', async () => {
  const { row, event, invoice } = await createStripeSubscription()
  await send(event('created'))
  await send(invoice('paid', 'in_replayed'))
  const { body: events } = await admin.get(`/payments/events?subscriptionId=${row._id}`)
  expect(events).toMatchObject([{ status: 'processed' }, { status: 'processed' }])
  for (const one of events) {
    const { status, body } = await admin.post(`/payments/events/${one._id}/replay`)
    expect([status, body.status, body.attempts]).toEqual([200, 'processed', 2])
  }
  expect([await statusOf(row), await invoicesOf(testTenant, row)]).toEqual([
    'active',
    [['in_replayed', 'paid', 2000, 'USD']],
  ])
})

test('a second paid subscription of one entity stays pending and is reported', async () => {
  const first = await createStripeSubscription({ billableEntityId: 'twice' })
  const second = await createStripeSubscription({ billableEntityId: 'twice' })
  await send(first.event('created'))
  expect((await send(second.event('created'))).body).toEqual({ status: 'processed' })
  expect([await statusOf(first.row), await statusOf(second.row)]).toEqual(['active', 'pending'])
  for (const eventName of ['webhook-failed', 'subscription-conflict']) {
    const reported = (await admin.get(`/events?source=payments&eventName=${eventName}`)).body
    const ids = reported.map((one: { metadata: { subscriptionId?: string } }) => one.metadata.subscriptionId)
    expect(ids).toContain(second.row._id)
  }
})

test('housekeeping removes settled and parked events after three months', async () => {
  const { event, invoice } = await createStripeSubscription()
  const waiting = await createStripeSubscription()
  await send(event('created'))
  await send(invoice('paid', 'in_kept'))
  await send(waiting.invoice('paid', 'in_waiting'))
  const count = async (query: string) => (await admin.get(`/payments/events?limit=1000&${query}`)).body.length
  const parked = await count('status=parked')
  expect(parked).toBeGreaterThan(0)
  moveClock(now() + 89 * 86_400_000)
  const settled = await count('status=processed,ignored')
  await withLease(testTenant.tenant, 'test', removeOld)
  expect([await count('status=processed,ignored'), await count('status=parked')]).toEqual([settled, parked])
  moveClock(now() + 60 * 86_400_000)
  await withLease(testTenant.tenant, 'test', removeOld)
  expect([await count('status=processed,ignored'), await count('status=parked')]).toEqual([0, 0])
  expect((await admin.get('/invoices?limit=1000')).body.length).toBeGreaterThan(0)
})

test('a removed connection no longer verifies webhooks, which get 401 INVALID_SIGNATURE', async () => {
  const removed = await createConnection(testTenant, {
    ...vendor.connection(),
    authentication: { webhookSecret: 'whsec_short' },
  })
  const sent = () => vendor.signEvent(vendor.happened('customer.created', { id: 'cus_1' }), 'whsec_short')
  expect((await deliver(testTenant, 'stripe', sent())).body).toEqual({ status: 'ignored' })
  expect((await admin.delete(`/integration-sources/${removed}`)).status).toBe(200)
  expect(statusAndCode(await deliver(testTenant, 'stripe', sent()))).toEqual([401, 'INVALID_SIGNATURE'])
})
