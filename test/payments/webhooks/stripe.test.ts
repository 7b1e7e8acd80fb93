import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { moveClock, now, toIsoString } from '../../../src/core/clock'
import { stripe } from '../../../src/payments/providers/stripe/provider'
import { startStripe } from '../../fakes/vendors/stripe'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { createTestTenant } from '../../test-tenant'
import { createOrder, createResolvedConnection } from '../providers/provider-fixtures'
import {
  createConnection,
  createDelivery,
  createPendingSubscription,
  findSubscription,
  invoicesOf,
  metadataOf,
} from './webhook-fixtures'

const testTenant = await createTestTenant()
const vendors = { new: await startStripe(), old: await startStripe({ old: true, secret: 'whsec_of_the_old_one' }) }
beforeAll(async () => {
  allowPrivateNetwork()
  await createConnection(testTenant, vendors.new.connection())
  await createConnection(testTenant, vendors.old.connection())
})
afterEach(() => moveClock())
afterAll(async () => {
  denyPrivateNetwork()
  await vendors.new.stop()
  await vendors.old.stop()
})

const ages = ['new', 'old'] as const
const DAY = 86_400_000

const deliverInOrder = (vendor: (typeof vendors)['new'], ...types: string[]) =>
  createDelivery(testTenant, 'stripe', vendor)(...types)

const COMPLETED = 'checkout.session.completed'
const CREATED = 'customer.subscription.created'
const UPDATED = 'customer.subscription.updated'
const PAID = 'invoice.paid'

/** Creates a pending subscription and its Stripe session. */
async function startCheckout(vendor: (typeof vendors)['new']) {
  const row = await createPendingSubscription(testTenant, { providerKind: 'stripe' })
  const one = createOrder({ subscriptionId: row._id, metadata: metadataOf(testTenant, row) })
  const { externalCheckoutId } = await stripe.createCheckout(createResolvedConnection(vendor.connection()), one)
  return { row, session: externalCheckoutId! }
}

async function buySubscription(vendor: (typeof vendors)['new']) {
  const { row, session } = await startCheckout(vendor)
  const id = vendor.pay(session)
  await deliverInOrder(vendor, CREATED, COMPLETED, PAID)
  return { row, id }
}

test.each(ages)(
  'a payment at Stripe (%s API) activates the subscription for its period and stores the invoice',
  async (age) => {
    const vendor = vendors[age]
    const { row, session } = await startCheckout(vendor)
    const start = Math.floor(now() / 1000) * 1000
    const id = vendor.pay(session, { at: start })
    const [, , invoice] = vendor.events
    expect(await deliverInOrder(vendor, CREATED, COMPLETED, PAID)).toEqual(['processed', 'processed', 'processed'])
    const after = await findSubscription(testTenant, row)
    expect(after).toMatchObject({
      status: 'active',
      externalSubscriptionId: id,
      currentPeriodStart: toIsoString(start),
    })
    expect(Date.parse(after.currentPeriodEnd!) - start).toBeGreaterThan(27 * DAY)
    expect(await invoicesOf(testTenant, row)).toEqual([[invoice.data.object.id, 'paid', 2000, 'USD']])
    const rows = await testTenant.tenant.db.query(
      'select invoice_url, items, period_start from invoices where subscription_id = ?',
      [row._id],
    )
    const { hosted_invoice_url } = invoice.data.object
    expect([rows[0]![0], JSON.parse(rows[0]![1] as string), rows[0]![2]]).toEqual([
      hosted_invoice_url,
      [{ description: '1 × Plan', quantity: 1, amount: 2000 }],
      start,
    ])
  },
)

test.each(ages)('the events of a Stripe payment (%s API) have the same effect in any order', async (age) => {
  const vendor = vendors[age]
  const orders = [
    [COMPLETED, CREATED, PAID],
    [PAID, COMPLETED, CREATED],
    [PAID, CREATED, COMPLETED],
    [COMPLETED, PAID, CREATED],
  ]
  for (const types of orders) {
    const { row, session } = await startCheckout(vendor)
    const id = vendor.pay(session)
    await deliverInOrder(vendor, ...types)
    expect(await findSubscription(testTenant, row)).toMatchObject({ status: 'active', externalSubscriptionId: id })
    expect((await invoicesOf(testTenant, row)).map(([, status]) => status)).toEqual(['paid'])
  }
})

test('a Stripe trial is trialing until it is paid, even when the event of the checkout arrives after its start', async () => {
  const vendor = vendors.new
  const { row, session } = await startCheckout(vendor)
  const id = vendor.pay(session, { trial: 14 })
  await deliverInOrder(vendor, CREATED, COMPLETED, PAID)
  const trial = await findSubscription(testTenant, row)
  expect(trial.status).toBe('trialing')
  expect(Date.parse(trial.trialEndsAt!) - now()).toBeGreaterThan(13 * DAY)
  moveClock(now() + 14 * DAY)
  vendor.renew(id)
  await deliverInOrder(vendor, UPDATED, PAID)
  expect(await findSubscription(testTenant, row)).toMatchObject({ status: 'active' })
})

test.each(ages)('a Stripe renewal (%s API) moves the period and stores its own invoice', async (age) => {
  const vendor = vendors[age]
  const { row, id } = await buySubscription(vendor)
  const before = await findSubscription(testTenant, row)
  moveClock(Date.parse(before.currentPeriodEnd!))
  vendor.renew(id)
  await deliverInOrder(vendor, UPDATED, PAID)
  const after = await findSubscription(testTenant, row)
  expect([after.status, after.currentPeriodStart]).toEqual(['active', before.currentPeriodEnd!])
  expect(after.currentPeriodEnd! > before.currentPeriodEnd!).toBe(true)
  expect(await invoicesOf(testTenant, row)).toHaveLength(2)
})

test.each(ages)(
  'a failed Stripe payment (%s API) makes the subscription past due with an open invoice, until it is paid',
  async (age) => {
    const vendor = vendors[age]
    const { row, id } = await buySubscription(vendor)
    moveClock(now() + 60_000)
    const invoice = vendor.fail(id)
    await deliverInOrder(vendor, 'invoice.payment_failed', UPDATED)
    expect((await findSubscription(testTenant, row)).status).toBe('past_due')
    expect((await invoicesOf(testTenant, row)).at(-1)).toEqual([invoice, 'open', 2000, 'USD'])
    moveClock(now() + 60_000)
    vendor.recover(invoice)
    await deliverInOrder(vendor, PAID, UPDATED)
    expect((await findSubscription(testTenant, row)).status).toBe('active')
    expect((await invoicesOf(testTenant, row)).at(-1)).toEqual([invoice, 'paid', 2000, 'USD'])
  },
)

test.each(['invoice.voided', 'invoice.marked_uncollectible'])(
  'the event %s makes an open Stripe invoice void',
  async (type) => {
    const vendor = vendors.new
    const { row, id } = await buySubscription(vendor)
    moveClock(now() + 60_000)
    const invoice = vendor.fail(id)
    vendor.giveUp(invoice, type)
    await deliverInOrder(vendor, 'invoice.payment_failed', UPDATED, type)
    expect((await invoicesOf(testTenant, row)).at(-1)).toEqual([invoice, 'void', 2000, 'USD'])
    expect((await findSubscription(testTenant, row)).status).toBe('past_due')
  },
)

test('a Stripe update sets the status and cancelAtPeriodEnd', async () => {
  const vendor = vendors.new
  const { row, id } = await buySubscription(vendor)
  const changes = [
    [{ cancel_at_period_end: true }, { status: 'active', cancelAtPeriodEnd: true }],
    [{ cancel_at_period_end: false }, { status: 'active', cancelAtPeriodEnd: false }],
    [{ status: 'past_due' }, { status: 'past_due' }],
    [{ status: 'active' }, { status: 'active', pastDueSince: null }],
    [{ status: 'unpaid' }, { status: 'past_due' }],
  ] as const
  for (const [to, expected] of changes) {
    moveClock(now() + 1_000)
    vendor.change(id, to)
    await deliverInOrder(vendor, UPDATED)
    expect(await findSubscription(testTenant, row)).toMatchObject(expected)
  }
})

test('a deleted Stripe subscription is canceled here, and an expired session makes its subscription expire', async () => {
  const vendor = vendors.new
  const { row, id } = await buySubscription(vendor)
  vendor.end(id)
  await deliverInOrder(vendor, 'customer.subscription.deleted')
  expect((await findSubscription(testTenant, row)).status).toBe('canceled')
  const unpaid = await startCheckout(vendor)
  vendor.expire(unpaid.session)
  await deliverInOrder(vendor, 'checkout.session.expired')
  expect((await findSubscription(testTenant, unpaid.row)).status).toBe('expired')
})

test('an expired Stripe session does not end a subscription that was paid in another session', async () => {
  const vendor = vendors.new
  const { row, session } = await startCheckout(vendor)
  const again = await startCheckout(vendor)
  vendor.sessions.get(again.session).client_reference_id = row._id
  vendor.sessions.get(again.session).metadata = metadataOf(testTenant, row)
  vendor.pay(session)
  await deliverInOrder(vendor, CREATED, COMPLETED, PAID)
  vendor.expire(again.session)
  await deliverInOrder(vendor, 'checkout.session.expired')
  expect((await findSubscription(testTenant, row)).status).toBe('active')
})

test('a payment by a payment link with a foreign reference is parked and activates nothing', async () => {
  const vendor = vendors.new
  const row = await createPendingSubscription(testTenant, { providerKind: 'stripe' })
  const { session } = await startCheckout(vendor)
  const cheap = vendor.sessions.get(session)
  Object.assign(cheap, {
    client_reference_id: row._id,
    payment_link: 'plink_1',
    metadata: {},
    subscription: 'sub_cheap',
  })
  vendor.happened(COMPLETED, cheap)
  expect(await deliverInOrder(vendor, COMPLETED)).toEqual(['parked'])
  expect((await findSubscription(testTenant, row)).status).toBe('pending')
})

test('Stripe events of other types, payments and tenants are ignored', async () => {
  const vendor = vendors.new
  const { row, session } = await startCheckout(vendor)
  vendor.happened('customer.created', { id: 'cus_1', object: 'customer' })
  vendor.happened(PAID, { id: 'in_1', object: 'invoice', lines: { data: [] } })
  vendor.happened('constructor', { id: 'x' })
  const foreign = structuredClone(vendor.sessions.get(session))
  vendor.happened(COMPLETED, { ...foreign, metadata: { ...foreign.metadata, tenant: 'somebody-else' } })
  const types = ['customer.created', PAID, 'constructor', COMPLETED]
  expect(await deliverInOrder(vendor, ...types)).toEqual(['ignored', 'ignored', 'ignored', 'ignored'])
  expect((await findSubscription(testTenant, row)).status).toBe('pending')
})

test('a Stripe invoice without lines moves the period to its own', async () => {
  const vendor = vendors.new
  const { row, id } = await buySubscription(vendor)
  const start = Math.floor(Date.parse((await findSubscription(testTenant, row)).currentPeriodEnd!) / 1000)
  const period = { period_start: start, period_end: start + 30 * 86_400 }
  vendor.happened(PAID, { id: 'in_bare', currency: 'usd', amount_paid: 2000, subscription: id, ...period })
  await deliverInOrder(vendor, PAID)
  expect(Date.parse((await findSubscription(testTenant, row)).currentPeriodEnd!)).toBe(period.period_end * 1000)
})

test('an empty or reversed Stripe period is ignored, and the invoice of a one-time fee is stored', async () => {
  const vendor = vendors.new
  const { row, id } = await buySubscription(vendor)
  const before = await findSubscription(testTenant, row)
  const line = { amount: 500, description: 'Fee', period: { start: 1721954054, end: 1721954054 } }
  const fee = {
    id: 'in_fee',
    currency: 'usd',
    amount_due: 500,
    amount_paid: 500,
    subscription: id,
    lines: { data: [line] },
  }
  moveClock(now() + 60_000)
  vendor.happened(PAID, fee)
  vendor.change(id, { items: { data: [{ current_period_start: 1896570518, current_period_end: 976287773 }] } })
  await deliverInOrder(vendor, PAID, UPDATED)
  const { currentPeriodStart, currentPeriodEnd } = await findSubscription(testTenant, row)
  expect([currentPeriodStart, currentPeriodEnd]).toEqual([before.currentPeriodStart, before.currentPeriodEnd])
  expect((await invoicesOf(testTenant, row)).at(-1)).toEqual(['in_fee', 'paid', 500, 'USD'])
})
