import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { moveClock, now, toIsoString } from '../../../src/core/clock'
import { paypal } from '../../../src/payments/providers/paypal/provider'
import { startPaypal } from '../../fakes/vendors/paypal'
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
const vendor = await startPaypal()
vendor.plan('P-PRO', '20.00')
const connection = createResolvedConnection(vendor.connection())
beforeAll(async () => {
  allowPrivateNetwork()
  await createConnection(testTenant, vendor.connection())
})
afterEach(() => {
  moveClock()
  expect(vendor.flaws).toEqual([])
})
afterAll(async () => {
  denyPrivateNetwork()
  await vendor.stop()
})

const deliverInOrder = createDelivery(testTenant, 'paypal', vendor)

const ACTIVATED = 'BILLING.SUBSCRIPTION.ACTIVATED'
const PAID = 'PAYMENT.SALE.COMPLETED'
const FAILED = 'BILLING.SUBSCRIPTION.PAYMENT.FAILED'

async function startCheckout() {
  const row = await createPendingSubscription(testTenant, { providerKind: 'paypal' })
  const externalIds = { monthlyPlanId: 'P-PRO' }
  const one = createOrder({ subscriptionId: row._id, externalIds, metadata: metadataOf(testTenant, row) })
  const { externalSubscriptionId } = await paypal.createCheckout(connection, one)
  return { row, id: externalSubscriptionId! }
}

async function buySubscription() {
  const { row, id } = await startCheckout()
  vendor.approve(id)
  await deliverInOrder(ACTIVATED, PAID)
  return { row, id }
}

test.each([{ types: [ACTIVATED, PAID] }, { types: [PAID, ACTIVATED] }])(
  'a PayPal approval activates the subscription until the next payment and stores the invoice: %j',
  async ({ types }) => {
    const { row, id } = await startCheckout()
    const sale = vendor.approve(id)
    expect(await deliverInOrder(...types)).toEqual(['processed', 'processed'])
    const { billing_info } = vendor.subscriptions.get(id)
    expect(await findSubscription(testTenant, row)).toMatchObject({
      ...{ status: 'active', externalSubscriptionId: id },
      currentPeriodEnd: toIsoString(Date.parse(billing_info.next_billing_time)),
    })
    expect(await invoicesOf(testTenant, row)).toEqual([[sale, 'paid', 2000, 'USD']])
  },
)

test('a PayPal renewal moves the period and stores its own invoice', async () => {
  const { row, id } = await buySubscription()
  const before = await findSubscription(testTenant, row)
  moveClock(Date.parse(before.currentPeriodEnd!) + 3_600_000)
  const sale = vendor.bill(id, now())
  await deliverInOrder(PAID)
  const after = await findSubscription(testTenant, row)
  expect([after.status, after.currentPeriodStart]).toEqual(['active', before.currentPeriodEnd!])
  expect(after.currentPeriodEnd! > before.currentPeriodEnd!).toBe(true)
  expect((await invoicesOf(testTenant, row)).map(([external]) => external)).toContain(sale)
})

test('a failing PayPal payment makes the subscription past due with one open invoice, which a later payment voids', async () => {
  const { row, id } = await buySubscription()
  for (const _ of [1, 2]) {
    moveClock(now() + 60_000)
    vendor.fail(id)
    await deliverInOrder(FAILED)
  }
  expect((await findSubscription(testTenant, row)).status).toBe('past_due')
  expect((await invoicesOf(testTenant, row)).slice(1)).toEqual([[`${id}-2`, 'open', 2000, 'USD']])
  moveClock(now() + 60_000)
  const sale = vendor.bill(id)
  await deliverInOrder(PAID)
  expect((await findSubscription(testTenant, row)).status).toBe('active')
  expect((await invoicesOf(testTenant, row)).slice(1)).toEqual([
    [`${id}-2`, 'void', 2000, 'USD'],
    [sale, 'paid', 2000, 'USD'],
  ])
})

test.each([
  ['CANCELLED', 'canceled'],
  ['SUSPENDED', 'paused'],
  ['EXPIRED', 'expired'],
] as const)('a PayPal subscription that becomes %s is %s here', async (theirs, ours) => {
  const { row, id } = await buySubscription()
  vendor.become(id, theirs)
  await deliverInOrder(`BILLING.SUBSCRIPTION.${theirs}`)
  expect((await findSubscription(testTenant, row)).status).toBe(ours)
})

test('a failed PayPal payment without an amount stores an open invoice at the price of the subscription', async () => {
  const { row, id } = await buySubscription()
  moveClock(now() + 60_000)
  vendor.happened(FAILED, { id, status: 'ACTIVE' })
  await deliverInOrder(FAILED)
  const day = toIsoString(now()).slice(0, 10)
  expect((await invoicesOf(testTenant, row)).slice(1)).toEqual([[`${id}-${day}`, 'open', 2000, 'USD']])
  expect((await findSubscription(testTenant, row)).status).toBe('past_due')
})

test('a PayPal update changes the period end', async () => {
  const { row, id } = await buySubscription()
  const next = now() + 40 * 86_400_000
  vendor.subscriptions.get(id).billing_info.next_billing_time = new Date(next).toISOString()
  vendor.become(id, 'ACTIVE', 'UPDATED')
  await deliverInOrder('BILLING.SUBSCRIPTION.UPDATED')
  expect(await findSubscription(testTenant, row)).toMatchObject({
    status: 'active',
    currentPeriodEnd: toIsoString(next),
  })
})

test('PayPal events of other types and about other sales are ignored', async () => {
  vendor.happened('CHECKOUT.ORDER.APPROVED', { id: '5O190127TN364715T' })
  vendor.happened(PAID, { id: '80021663DE681814L', amount: { total: '5.00', currency: 'USD' } })
  vendor.happened('BILLING.SUBSCRIPTION.CREATED', { id: 'I-1', status: 'APPROVAL_PENDING' })
  expect(await deliverInOrder('CHECKOUT.ORDER.APPROVED', PAID, 'BILLING.SUBSCRIPTION.CREATED')).toEqual([
    'ignored',
    'ignored',
    'ignored',
  ])
})
