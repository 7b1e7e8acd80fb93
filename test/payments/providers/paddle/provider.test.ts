import { afterAll, beforeAll, expect, test } from 'bun:test'
import { paddle } from '../../../../src/payments/providers/paddle/provider'
import { startPaddle } from '../../../fakes/vendors/paddle'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../../plugins/fixtures'
import { errorOf } from '../../../rejections'
import { createOrder, createResolvedConnection, createSubscriptionRow } from '../provider-fixtures'

const vendor = await startPaddle()
beforeAll(allowPrivateNetwork)
afterAll(async () => {
  denyPrivateNetwork()
  await vendor.stop()
})

vendor.price('pri_pro', '2000')
const connection = vendor.connection()
const resolvedConnection = createResolvedConnection(connection)
const externalIds = { monthlyPriceId: 'pri_pro' }
const checkoutRequests = () => vendor.asked('POST', /^\/transactions$/)

test('a Paddle checkout creates a transaction with the price of the plan, and returns its id as the token', async () => {
  const one = createOrder({ externalIds })
  const { checkoutUrl, clientToken, externalCheckoutId } = await paddle.createCheckout(resolvedConnection, one)
  expect([checkoutUrl, clientToken]).toEqual([`https://shop.example.com/pay?_ptxn=${clientToken}`, externalCheckoutId!])
  const { body } = checkoutRequests().at(-1)!
  expect(body).toEqual({
    items: [{ price_id: 'pri_pro', quantity: 1 }],
    custom_data: one.metadata,
    currency_code: 'USD',
  })
})

test('a Paddle checkout creates a price for a dynamic amount and for a coupon', async () => {
  const made = [
    createOrder({ dynamic: true, isPlanPrice: false, amount: 1234 }),
    createOrder({ isPlanPrice: false, amount: 1500, externalIds: { ...externalIds, productId: 'pro_1' } }),
  ]
  const items = []
  for (const one of made) {
    await paddle.createCheckout(resolvedConnection, one)
    items.push(checkoutRequests().at(-1)!.body.items[0].price)
  }
  const cycle = { billing_cycle: { interval: 'month', frequency: 1 }, quantity: { minimum: 1, maximum: 1 } }
  const names = { name: 'Pro', description: 'Pro (monthly)' }
  expect(items).toEqual([
    {
      ...names,
      ...cycle,
      unit_price: { amount: '1234', currency_code: 'USD' },
      product: { name: 'Pro', tax_category: 'standard' },
    },
    { ...names, ...cycle, unit_price: { amount: '1500', currency_code: 'USD' }, product_id: 'pro_1' },
  ])
})

test('a Paddle checkout without a price id is rejected with 400 MISSING_EXTERNAL_PRICE_ID before Paddle is asked', async () => {
  const before = vendor.seen.length
  expect(await errorOf(paddle.createCheckout(resolvedConnection, createOrder()))).toMatchObject({
    status: 400,
    code: 'MISSING_EXTERNAL_PRICE_ID',
  })
  expect(vendor.seen).toHaveLength(before)
})

test('each Paddle checkout creates a transaction, also after a cancellation', async () => {
  const one = createOrder({ externalIds })
  const { externalCheckoutId } = await paddle.createCheckout(resolvedConnection, one)
  await paddle.cancel(resolvedConnection, createSubscriptionRow({ externalCheckoutId }))
  const again = (await paddle.createCheckout(resolvedConnection, one)).externalCheckoutId!
  expect([again === externalCheckoutId, vendor.transactions.get(again).status]).toEqual([false, 'ready'])
})

const buySubscription = async () => {
  const { externalCheckoutId } = await paddle.createCheckout(resolvedConnection, createOrder({ externalIds }))
  return vendor.pay(externalCheckoutId!)
}

test('cancel ends a Paddle subscription or unpaid transaction, and may be repeated', async () => {
  const id = await buySubscription()
  for (const _ of [1, 2]) await paddle.cancel(resolvedConnection, createSubscriptionRow({ externalSubscriptionId: id }))
  expect(vendor.subscriptions.get(id).status).toBe('canceled')
  await paddle.cancel(resolvedConnection, createSubscriptionRow({ externalSubscriptionId: 'sub_of_nobody' }))
  const { externalCheckoutId } = await paddle.createCheckout(resolvedConnection, createOrder({ externalIds }))
  for (const _ of [1, 2]) await paddle.cancel(resolvedConnection, createSubscriptionRow({ externalCheckoutId }))
  expect(vendor.transactions.get(externalCheckoutId!).status).toBe('canceled')
  await paddle.cancel(resolvedConnection, createSubscriptionRow({}))
  // It was paid just now, and the event has not arrived yet.
  const paid = (await paddle.createCheckout(resolvedConnection, createOrder({ externalIds }))).externalCheckoutId!
  const unreported = vendor.pay(paid)
  await paddle.cancel(resolvedConnection, createSubscriptionRow({ externalCheckoutId: paid }))
  expect(vendor.subscriptions.get(unreported).status).toBe('canceled')
})

test('reprice changes the next Paddle cycles without billing now, and only when the price differs', async () => {
  const id = await buySubscription()
  const row = createSubscriptionRow({ externalSubscriptionId: id })
  await paddle.reprice(resolvedConnection, row, 4200)
  expect(vendor.subscriptions.get(id).items[0].price.unit_price).toEqual({ amount: '4200', currency_code: 'USD' })
  const changes = vendor.asked('PATCH', /^\/subscriptions/)
  const { items, proration_billing_mode } = changes.at(-1)!.body
  expect(proration_billing_mode).toBe('do_not_bill')
  expect(items).toMatchObject([{ price: { billing_cycle: { interval: 'month', frequency: 1 } } }])
  await paddle.reprice(resolvedConnection, row, 4200)
  expect(vendor.asked('PATCH', /^\/subscriptions/)).toHaveLength(changes.length)
  // A subscription that no longer exists is ignored.
  await paddle.reprice(resolvedConnection, createSubscriptionRow({ externalSubscriptionId: 'sub_of_nobody' }), 4200)
})

test('fetchSubscription returns the status and invoices of a Paddle subscription, or undefined for an unknown one', async () => {
  const id = await buySubscription()
  const open = vendor.fail(id)
  vendor.become(id, 'past_due', 'updated', {
    scheduled_change: { action: 'cancel', effective_at: 'later', resume_at: null },
  })
  const found = await paddle.fetchSubscription(resolvedConnection, id)
  expect(found).toMatchObject({ externalSubscriptionId: id, status: 'past_due', cancelAtPeriodEnd: true })
  expect(found!.invoices.map(({ status, amount }) => [status, amount])).toEqual([
    ['paid', 2000],
    ['open', 2000],
  ])
  expect(found!.invoices[1]!.externalInvoiceId).toBe(open)
  expect(await paddle.fetchSubscription(resolvedConnection, 'sub_of_nobody')).toBeUndefined()
})

test('fetchSubscription reads all pages of Paddle transactions', async () => {
  const id = await buySubscription()
  for (let n = 0; n < 65; n++) vendor.renew(id)
  const before = vendor.asked('GET', /^\/transactions$/).length
  const { invoices } = (await paddle.fetchSubscription(resolvedConnection, id))!
  expect(new Set(invoices.map(({ externalInvoiceId }) => externalInvoiceId)).size).toBe(66)
  expect(vendor.asked('GET', /^\/transactions$/)).toHaveLength(before + 3)
})
