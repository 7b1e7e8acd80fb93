import { afterAll, beforeAll, expect, test } from 'bun:test'
import { toStripeAmount } from '../../../../src/payments/providers/stripe/amounts'
import { stripe } from '../../../../src/payments/providers/stripe/provider'
import { STRIPE_KEY, startStripe } from '../../../fakes/vendors/stripe'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../../plugins/fixtures'
import { errorOf } from '../../../rejections'
import {
  captureLeaks,
  createOrder,
  createResolvedConnection,
  createSubscriptionRow,
  PROVIDER_ERROR_WITHOUT_LEAK,
} from '../provider-fixtures'

const vendor = await startStripe()
beforeAll(allowPrivateNetwork)
afterAll(async () => {
  denyPrivateNetwork()
  await vendor.stop()
})

vendor.price('price_pro', 2000)
const resolvedConnection = createResolvedConnection(vendor.connection())
const lastCheckoutRequest = () => vendor.asked('POST', /checkout\/sessions$/).at(-1)!

test('a Stripe checkout creates a session with the price of the plan and the metadata of the subscription', async () => {
  const one = createOrder({ externalIds: { monthlyPriceId: 'price_pro' } })
  const { checkoutUrl, clientToken, externalCheckoutId } = await stripe.createCheckout(resolvedConnection, one)
  expect([checkoutUrl, clientToken]).toEqual([`https://checkout.stripe.com/c/pay/${externalCheckoutId}`, null])
  const { body, headers } = lastCheckoutRequest()
  expect(body).toEqual({
    mode: 'subscription',
    line_items: { 0: { price: 'price_pro', quantity: '1' } },
    client_reference_id: one.subscriptionId,
    metadata: one.metadata,
    subscription_data: { metadata: one.metadata },
    customer_email: 'ada@example.com',
    success_url: one.successUrl,
    cancel_url: one.cancelUrl,
  })
  expect([headers['idempotency-key'], headers['stripe-version']]).toEqual([one.key, expect.stringMatching(/^20\d\d-/)])
})

test('a Stripe checkout creates a price for a dynamic amount, for a coupon, and for a plan without a price id', async () => {
  const made = [
    createOrder({ dynamic: true, isPlanPrice: false, amount: 1234, externalIds: { monthlyPriceId: 'price_pro' } }),
    createOrder({
      isPlanPrice: false,
      amount: 1500,
      externalIds: { monthlyPriceId: 'price_pro', productId: 'prod_pro' },
    }),
    createOrder({ billingCycle: 'yearly', currency: 'JPY', amount: 900 }),
  ]
  const data = []
  for (const one of made) {
    await stripe.createCheckout(resolvedConnection, one)
    data.push(lastCheckoutRequest().body.line_items[0].price_data)
  }
  expect(data).toEqual([
    { currency: 'usd', unit_amount: '1234', recurring: { interval: 'month' }, product_data: { name: 'Pro' } },
    { currency: 'usd', unit_amount: '1500', recurring: { interval: 'month' }, product: 'prod_pro' },
    { currency: 'jpy', unit_amount: '900', recurring: { interval: 'year' }, product_data: { name: 'Pro' } },
  ])
})

test('a Stripe checkout with requireExternalPrice gets 400 MISSING_EXTERNAL_PRICE_ID without a price id, except for dynamic plans', async () => {
  const strict = createResolvedConnection({
    ...vendor.connection(),
    metadata: { apiUrl: vendor.url, requireExternalPrice: true },
  })
  const before = vendor.seen.length
  expect(await errorOf(stripe.createCheckout(strict, createOrder()))).toMatchObject({
    status: 400,
    code: 'MISSING_EXTERNAL_PRICE_ID',
  })
  expect(vendor.seen.length).toBe(before)
  expect(await stripe.createCheckout(strict, createOrder({ dynamic: true }))).toMatchObject({ clientToken: null })
})

test('an embedded Stripe checkout returns a client token, and redirects only when a successUrl is set', async () => {
  const embedding = createResolvedConnection({
    ...vendor.connection(),
    metadata: { apiUrl: vendor.url, checkoutMode: 'embedded' },
  })
  // The same order was placed before an admin changed the mode.
  const one = createOrder()
  await stripe.createCheckout(resolvedConnection, one)
  const { checkoutUrl, clientToken } = await stripe.createCheckout(embedding, one)
  expect([checkoutUrl, clientToken]).toEqual([null, expect.stringMatching(/_secret_/)])
  expect(lastCheckoutRequest().body).toMatchObject({
    ui_mode: 'embedded_page',
    return_url: 'https://shop.example.com/thanks',
  })
  await stripe.createCheckout(embedding, createOrder({ successUrl: undefined }))
  expect(lastCheckoutRequest().body).toMatchObject({ redirect_on_completion: 'never' })
})

test('a Stripe checkout whose answer was lost, or that is repeated, creates one session', async () => {
  const one = createOrder()
  const before = vendor.sessions.size
  vendor.own.nextFailures = ['lost']
  const first = await stripe.createCheckout(resolvedConnection, one)
  const again = await stripe.createCheckout(resolvedConnection, one)
  expect([again, vendor.sessions.size - before]).toEqual([first, 1])
})

test('a Stripe checkout that fails only by its status, or by a foreign key, gets 502 PROVIDER_ERROR and leaks no secret', async () => {
  // A proxy may signal an error only by its status.
  const errorByStatusOnly = { status: 502, body: { id: 'cs_1', url: 'https://checkout.stripe.com/c/pay/cs_1' } }
  vendor.own.failWhen = () => errorByStatusOnly
  expect(await captureLeaks([STRIPE_KEY], () => stripe.createCheckout(resolvedConnection, createOrder()))).toEqual(
    PROVIDER_ERROR_WITHOUT_LEAK,
  )
  vendor.own.failWhen = () => undefined
  const foreign = createResolvedConnection({
    ...vendor.connection(),
    authentication: { secretKey: 'sk_of_somebody_else' },
  })
  expect(await captureLeaks(['sk_of_somebody_else'], () => stripe.createCheckout(foreign, createOrder()))).toEqual(
    PROVIDER_ERROR_WITHOUT_LEAK,
  )
})

const buySubscription = async () => {
  const { externalCheckoutId } = await stripe.createCheckout(resolvedConnection, createOrder())
  return vendor.pay(externalCheckoutId!)
}

test('cancel ends a Stripe subscription or open session, may be repeated, and reports failures with 502 PROVIDER_ERROR', async () => {
  const externalSubscriptionId = await buySubscription()
  const row = createSubscriptionRow({ externalSubscriptionId })
  await stripe.cancel(resolvedConnection, row)
  await stripe.cancel(resolvedConnection, createSubscriptionRow({ externalSubscriptionId }))
  expect(vendor.subscriptions.get(externalSubscriptionId).status).toBe('canceled')
  await stripe.cancel(resolvedConnection, createSubscriptionRow({ externalSubscriptionId: 'sub_of_nobody' }))

  const { externalCheckoutId } = await stripe.createCheckout(resolvedConnection, createOrder())
  for (const _ of [1, 2]) await stripe.cancel(resolvedConnection, createSubscriptionRow({ externalCheckoutId }))
  expect(vendor.sessions.get(externalCheckoutId!).status).toBe('expired')
  await stripe.cancel(resolvedConnection, createSubscriptionRow({}))
  await stripe.cancel(resolvedConnection, createSubscriptionRow({ externalCheckoutId: 'cs_of_nobody' }))
  // It was paid just now, and the event has not arrived yet.
  const paid = (await stripe.createCheckout(resolvedConnection, createOrder())).externalCheckoutId!
  const unreported = vendor.pay(paid)
  await stripe.cancel(resolvedConnection, createSubscriptionRow({ externalCheckoutId: paid }))
  expect(vendor.subscriptions.get(unreported).status).toBe('canceled')
  // Stripe repeats a failure under the same key for a day, so a retry needs another key.
  const open = (await stripe.createCheckout(resolvedConnection, createOrder())).externalCheckoutId!
  for (const failure of [
    { status: 502, body: {} },
    { status: 401, body: { message: 'No.' } },
  ]) {
    vendor.own.nextFailures = [failure]
    expect(
      await captureLeaks([STRIPE_KEY], () =>
        stripe.cancel(resolvedConnection, createSubscriptionRow({ externalSubscriptionId: unreported })),
      ),
    ).toEqual(PROVIDER_ERROR_WITHOUT_LEAK)
  }
  vendor.own.nextFailures = [{ status: 500 }]
  const cancelOpen = () => stripe.cancel(resolvedConnection, createSubscriptionRow({ externalCheckoutId: open }))
  expect(await captureLeaks([STRIPE_KEY], cancelOpen)).toEqual(PROVIDER_ERROR_WITHOUT_LEAK)
  await cancelOpen()
  expect(vendor.sessions.get(open).status).toBe('expired')
  vendor.own.failWhen = () => 'down'
  expect(await captureLeaks([STRIPE_KEY], () => stripe.cancel(resolvedConnection, row))).toEqual(
    PROVIDER_ERROR_WITHOUT_LEAK,
  )
  vendor.own.failWhen = () => undefined
})

test('reprice changes the next Stripe cycles without proration, and only when the price differs', async () => {
  const externalSubscriptionId = await buySubscription()
  const row = createSubscriptionRow({ externalSubscriptionId })
  await stripe.reprice(resolvedConnection, row, 4200)
  const { price } = vendor.subscriptions.get(externalSubscriptionId).items.data[0]
  expect([price.unit_amount, price.currency]).toEqual([4200, 'usd'])
  const change = vendor.asked('POST', /subscriptions\//)
  expect(change.at(-1)!.body).toMatchObject({ proration_behavior: 'none' })
  await stripe.reprice(resolvedConnection, row, 4200)
  expect(vendor.asked('POST', /subscriptions\//)).toHaveLength(change.length)
  await stripe.reprice(resolvedConnection, createSubscriptionRow({ ...row, updated: '2' }), 2000)
  await stripe.reprice(resolvedConnection, createSubscriptionRow({ ...row, updated: '3' }), 4200)
  expect(vendor.subscriptions.get(externalSubscriptionId).items.data[0].price.unit_amount).toBe(4200)
  // A subscription that no longer exists is ignored.
  await stripe.reprice(resolvedConnection, createSubscriptionRow({ externalSubscriptionId: 'sub_of_nobody' }), 4200)
})

test('fetchSubscription returns the status, period and invoices of a Stripe subscription, or undefined for an unknown one', async () => {
  const id = await buySubscription()
  vendor.change(id, { cancel_at_period_end: true })
  const open = vendor.fail(id)
  const found = await stripe.fetchSubscription(resolvedConnection, id)
  expect(found).toMatchObject({ externalSubscriptionId: id, status: 'past_due', cancelAtPeriodEnd: true })
  expect(found!.periodEnd! - found!.periodStart!).toBeGreaterThan(27 * 86_400_000)
  expect(found!.invoices.map(({ status, amount, currency }) => [status, amount, currency])).toEqual([
    ['paid', 2000, 'USD'],
    ['open', 2000, 'USD'],
  ])
  expect(found!.invoices[1]!.externalInvoiceId).toBe(open)
  expect(await stripe.fetchSubscription(resolvedConnection, 'sub_of_nobody')).toBeUndefined()
})

test('fetchSubscription reads all pages of Stripe invoices', async () => {
  const id = await buySubscription()
  for (let n = 0; n < 120; n++) vendor.renew(id)
  const { invoices } = (await stripe.fetchSubscription(resolvedConnection, id))!
  expect(new Set(invoices.map(({ externalInvoiceId }) => externalInvoiceId)).size).toBe(121)
})

test('Stripe amounts use the minor units that Stripe expects for each currency', () => {
  const counted = [
    ['USD', 1999, 1999],
    ['JPY', 500, 500],
    ['KWD', 12_345, 12_350],
    ['ISK', 5, 500],
    ['UGX', 5, 500],
    ['MGA', 500, 5],
  ] as const
  for (const [currency, minor, expected] of counted)
    expect([currency, toStripeAmount(minor, currency)]).toEqual([currency, expected])
})
