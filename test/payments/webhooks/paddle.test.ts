import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { Paddle } from '@paddle/paddle-node-sdk'
import { eq } from 'drizzle-orm'
import { moveClock, now, toIsoString } from '../../../src/core/clock'
import { paddle } from '../../../src/payments/providers/paddle/provider'
import { subscriptions } from '../../../src/payments/tables'
import { PADDLE_SECRET, startPaddle } from '../../fakes/vendors/paddle'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { createTestTenant } from '../../test-tenant'
import { createOrder, createResolvedConnection } from '../providers/provider-fixtures'
import {
  createConnection,
  createDelivery,
  createPendingSubscription,
  deliver,
  findSubscription,
  invoicesOf,
  metadataOf,
} from './webhook-fixtures'

const testTenant = await createTestTenant()
const vendor = await startPaddle()
vendor.price('pri_pro', '2000')
const connection = createResolvedConnection(vendor.connection())
beforeAll(async () => {
  allowPrivateNetwork()
  await createConnection(testTenant, vendor.connection())
})
afterEach(() => moveClock())
afterAll(async () => {
  denyPrivateNetwork()
  await vendor.stop()
})

const deliverInOrder = createDelivery(testTenant, 'paddle', vendor)

const CREATED = 'subscription.created'
const ACTIVATED = 'subscription.activated'
const UPDATED = 'subscription.updated'
const PAID = 'transaction.completed'

async function startCheckout() {
  const row = await createPendingSubscription(testTenant, { providerKind: 'paddle' })
  const externalIds = { monthlyPriceId: 'pri_pro' }
  const one = createOrder({ subscriptionId: row._id, externalIds, metadata: metadataOf(testTenant, row) })
  const { externalCheckoutId } = await paddle.createCheckout(connection, one)
  return { row, transaction: externalCheckoutId! }
}

async function buySubscription() {
  const { row, transaction } = await startCheckout()
  const id = vendor.pay(transaction)
  await deliverInOrder(CREATED, ACTIVATED, PAID)
  return { row, id }
}

test.each([
  { types: [CREATED, ACTIVATED, PAID] },
  { types: [PAID, ACTIVATED, CREATED] },
  { types: [ACTIVATED, PAID, CREATED] },
])('a Paddle payment activates the subscription for its period and stores the invoice: %j', async ({ types }) => {
  const { row, transaction } = await startCheckout()
  const id = vendor.pay(transaction)
  expect(await deliverInOrder(...types)).toEqual(['processed', 'processed', 'processed'])
  const { starts_at, ends_at } = vendor.subscriptions.get(id).current_billing_period
  expect(await findSubscription(testTenant, row)).toMatchObject({
    ...{ status: 'active', externalSubscriptionId: id },
    ...{ currentPeriodStart: starts_at, currentPeriodEnd: ends_at },
  })
  expect(await invoicesOf(testTenant, row)).toEqual([[transaction, 'paid', 2000, 'USD']])
})

test.each([CREATED, PAID])(
  'a Paddle event %s without custom data is matched by the transaction of the checkout',
  async (type) => {
    const { row, transaction } = await startCheckout()
    await testTenant.tenant.write((tx) =>
      tx.update(subscriptions).set({ externalCheckoutId: transaction }).where(eq(subscriptions._id, row._id)),
    )
    const id = vendor.pay(transaction)
    const event = vendor.events.splice(0).find(({ event_type }) => event_type === type)
    const data = { ...event.data, custom_data: null, ...(type === CREATED && { transaction_id: transaction }) }
    const { body } = await deliver(testTenant, 'paddle', vendor.signEvent({ ...event, data }))
    expect(body.status).toBe('processed')
    expect(await findSubscription(testTenant, row)).toMatchObject({ status: 'active', externalSubscriptionId: id })
  },
)

test('the official Paddle SDK accepts the webhooks of the fake Paddle', async () => {
  const { row, id } = await buySubscription()
  vendor.become(id, 'active', 'updated')
  const [event] = vendor.events.splice(0)
  const { raw, headers } = vendor.signEvent(event, PADDLE_SECRET, Math.floor(Date.now() / 1000))
  const read = await new Paddle('unused').webhooks.unmarshal(raw, PADDLE_SECRET, headers['paddle-signature']!)
  expect(read).toMatchObject({
    eventType: UPDATED,
    data: { id, status: 'active', customData: metadataOf(testTenant, row) },
  })
})

test('a Paddle trial stores its end, and its activation makes the subscription active', async () => {
  const { row, transaction } = await startCheckout()
  const id = vendor.pay(transaction, { trial: 14 })
  await deliverInOrder(CREATED, 'subscription.trialing', PAID)
  const { ends_at } = vendor.subscriptions.get(id).current_billing_period
  expect(await findSubscription(testTenant, row)).toMatchObject({ trialEndsAt: ends_at, currentPeriodEnd: ends_at })
  moveClock(Date.parse(ends_at))
  vendor.become(id, 'active', 'activated')
  await deliverInOrder(ACTIVATED)
  expect(await findSubscription(testTenant, row)).toMatchObject({ status: 'active' })
})

test('a Paddle renewal moves the period and stores its own invoice', async () => {
  const { row, id } = await buySubscription()
  const before = await findSubscription(testTenant, row)
  moveClock(Date.parse(before.currentPeriodEnd!))
  const transaction = vendor.renew(id)
  await deliverInOrder(UPDATED, PAID)
  const after = await findSubscription(testTenant, row)
  expect([after.status, after.currentPeriodStart]).toEqual(['active', before.currentPeriodEnd!])
  expect((await invoicesOf(testTenant, row)).at(-1)).toEqual([transaction, 'paid', 2000, 'USD'])
})

test('a failed Paddle payment makes the subscription past due with an open invoice, until it is paid', async () => {
  const { row, id } = await buySubscription()
  moveClock(now() + 60_000)
  const transaction = vendor.fail(id)
  await deliverInOrder('transaction.payment_failed', 'subscription.past_due')
  expect((await findSubscription(testTenant, row)).status).toBe('past_due')
  expect((await invoicesOf(testTenant, row)).at(-1)).toEqual([transaction, 'open', 2000, 'USD'])
  moveClock(now() + 60_000)
  vendor.recover(transaction)
  await deliverInOrder(PAID, UPDATED)
  expect((await findSubscription(testTenant, row)).status).toBe('active')
  expect((await invoicesOf(testTenant, row)).at(-1)).toEqual([transaction, 'paid', 2000, 'USD'])
})

test('a declined card leaves a Paddle checkout pending, and a second try pays it', async () => {
  const { row, transaction } = await startCheckout()
  vendor.decline(transaction)
  expect(await deliverInOrder('transaction.payment_failed')).toEqual(['processed'])
  expect((await findSubscription(testTenant, row)).status).toBe('pending')
  vendor.pay(transaction)
  await deliverInOrder(CREATED, ACTIVATED, PAID)
  expect([(await findSubscription(testTenant, row)).status, await invoicesOf(testTenant, row)]).toEqual([
    'active',
    [[transaction, 'paid', 2000, 'USD']],
  ])
})

test('a Paddle update sets and clears cancelAtPeriodEnd', async () => {
  const { row, id } = await buySubscription()
  const scheduled_change = { action: 'cancel', effective_at: toIsoString(now()), resume_at: null }
  vendor.become(id, 'active', 'updated', { scheduled_change })
  await deliverInOrder(UPDATED)
  expect(await findSubscription(testTenant, row)).toMatchObject({ status: 'active', cancelAtPeriodEnd: true })
  moveClock(now() + 1_000)
  vendor.become(id, 'active', 'updated', { scheduled_change: null })
  await deliverInOrder(UPDATED)
  expect(await findSubscription(testTenant, row)).toMatchObject({ status: 'active', cancelAtPeriodEnd: false })
})

test.each(['canceled', 'paused'] as const)('a Paddle subscription that becomes %s is so here', async (status) => {
  const { row, id } = await buySubscription()
  vendor.become(id, status, status)
  await deliverInOrder(`subscription.${status}`)
  expect((await findSubscription(testTenant, row)).status).toBe(status)
})

test('Paddle events about unknown objects are ignored', async () => {
  vendor.happened('customer.created', { id: 'ctm_1' })
  vendor.happened(PAID, { id: 'txn_1', currency_code: 'USD', details: null, payments: [] })
  expect(await deliverInOrder('customer.created', PAID)).toEqual(['ignored', 'ignored'])
})
