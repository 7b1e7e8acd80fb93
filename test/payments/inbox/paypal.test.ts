import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { iso, moveClock, now } from '../../../src/core/clock'
import { paypal } from '../../../src/payments/providers/paypal'
import { house } from '../../house'
import { startPaypal } from '../../outside/vendors/paypal'
import { closed, open } from '../../plugins/kit'
import { opened, order } from '../providers/kit'
import { connect, deliver, invoicesOf, metadataOf, pending, shown } from './kit'

const there = await house()
const vendor = await startPaypal()
vendor.plan('P-PRO', '20.00')
const connected = opened(vendor.connection())
beforeAll(async () => {
  open()
  await connect(there, vendor.connection())
})
afterEach(() => {
  moveClock(Date.now())
  expect(vendor.flaws).toEqual([])
})
afterAll(async () => {
  closed()
  await vendor.stop()
})

/** What PayPal has told since somebody looked, sent in this order. */
async function told(...types: string[]) {
  const events = vendor.events.splice(0)
  const statuses = []
  for (const type of types) {
    const [event] = events.splice(
      events.findIndex(({ event_type }) => event_type === type),
      1,
    )
    statuses.push((await deliver(there, 'paypal', vendor.sent(event))).body.status)
  }
  expect(events.map(({ event_type }) => event_type)).toEqual([])
  return statuses
}

const ACTIVATED = 'BILLING.SUBSCRIPTION.ACTIVATED'
const PAID = 'PAYMENT.SALE.COMPLETED'
const FAILED = 'BILLING.SUBSCRIPTION.PAYMENT.FAILED'

async function begun() {
  const row = await pending(there, { providerKind: 'paypal' })
  const externalIds = { monthlyPlanId: 'P-PRO' }
  const one = order({ subscriptionId: row._id, externalIds, metadata: metadataOf(there, row) })
  const { externalSubscriptionId } = await paypal.createCheckout(connected, one)
  return { row, id: externalSubscriptionId! }
}

async function bought() {
  const { row, id } = await begun()
  vendor.approve(id)
  await told(ACTIVATED, PAID)
  return { row, id }
}

test.each([{ types: [ACTIVATED, PAID] }, { types: [PAID, ACTIVATED] }])(
  'who approves is active until the next payment, with an invoice: %j',
  async ({ types }) => {
    const { row, id } = await begun()
    const sale = vendor.approve(id)
    expect(await told(...types)).toEqual(['processed', 'processed'])
    const { billing_info } = vendor.subscriptions.get(id)
    expect(await shown(there, row)).toMatchObject({
      ...{ status: 'active', externalSubscriptionId: id },
      currentPeriodEnd: iso(Date.parse(billing_info.next_billing_time)),
    })
    expect(await invoicesOf(there, row)).toEqual([[sale, 'paid', 2000, 'USD']])
  },
)

test('a renewal moves the period, and is an invoice of its own', async () => {
  const { row, id } = await bought()
  const before = await shown(there, row)
  moveClock(Date.parse(before.currentPeriodEnd!) + 3_600_000)
  const sale = vendor.bill(id, now())
  await told(PAID)
  const after = await shown(there, row)
  expect([after.status, after.currentPeriodStart]).toEqual(['active', before.currentPeriodEnd!])
  expect(after.currentPeriodEnd! > before.currentPeriodEnd!).toBe(true)
  expect((await invoicesOf(there, row)).map(([external]) => external)).toContain(sale)
})

test('a payment that fails is past due with one open invoice, however often it is tried, which a payment replaces', async () => {
  const { row, id } = await bought()
  for (const _ of [1, 2]) {
    moveClock(now() + 60_000)
    vendor.fail(id)
    await told(FAILED)
  }
  expect((await shown(there, row)).status).toBe('past_due')
  expect((await invoicesOf(there, row)).slice(1)).toEqual([[`${id}-2`, 'open', 2000, 'USD']])
  moveClock(now() + 60_000)
  const sale = vendor.bill(id)
  await told(PAID)
  expect((await shown(there, row)).status).toBe('active')
  expect((await invoicesOf(there, row)).slice(1)).toEqual([
    [`${id}-2`, 'void', 2000, 'USD'],
    [sale, 'paid', 2000, 'USD'],
  ])
})

test.each([
  ['CANCELLED', 'canceled'],
  ['SUSPENDED', 'canceled'],
  ['EXPIRED', 'expired'],
])('%s there is %s here', async (theirs, ours) => {
  const { row, id } = await bought()
  vendor.become(id, theirs)
  await told(`BILLING.SUBSCRIPTION.${theirs}`)
  expect((await shown(there, row)).status).toBe(ours as never)
})

test('a payment that fails is an open invoice also where PayPal does not say over how much', async () => {
  const { row, id } = await bought()
  moveClock(now() + 60_000)
  vendor.happened(FAILED, { id, status: 'ACTIVE' })
  await told(FAILED)
  const day = iso(now()).slice(0, 10)
  expect((await invoicesOf(there, row)).slice(1)).toEqual([[`${id}-${day}`, 'open', 2000, 'USD']])
  expect((await shown(there, row)).status).toBe('past_due')
})

test('an update brings what has changed', async () => {
  const { row, id } = await bought()
  const next = now() + 40 * 86_400_000
  vendor.subscriptions.get(id).billing_info.next_billing_time = new Date(next).toISOString()
  vendor.become(id, 'ACTIVE', 'UPDATED')
  await told('BILLING.SUBSCRIPTION.UPDATED')
  expect(await shown(there, row)).toMatchObject({ status: 'active', currentPeriodEnd: iso(next) })
})

test('what is about nothing here is ignored: other types, and sales of other things', async () => {
  vendor.happened('CHECKOUT.ORDER.APPROVED', { id: '5O190127TN364715T' })
  vendor.happened(PAID, { id: '80021663DE681814L', amount: { total: '5.00', currency: 'USD' } })
  vendor.happened('BILLING.SUBSCRIPTION.CREATED', { id: 'I-1', status: 'APPROVAL_PENDING' })
  expect(await told('CHECKOUT.ORDER.APPROVED', PAID, 'BILLING.SUBSCRIPTION.CREATED')).toEqual([
    'ignored',
    'ignored',
    'ignored',
  ])
})
