import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { fromPaypalAmount, toPaypalMoney } from '../../../../src/payments/providers/paypal/amounts'
import { paypal } from '../../../../src/payments/providers/paypal/provider'
import { startPaypal } from '../../../fakes/vendors/paypal'
import { hasSpecs } from '../../../fakes/vendors/specs'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../../plugins/fixtures'
import { errorOf } from '../../../rejections'
import {
  captureLeaks,
  createOrder,
  createResolvedConnection,
  createSubscriptionRow,
  PROVIDER_ERROR_WITHOUT_LEAK,
} from '../provider-fixtures'

const vendor = await startPaypal()
beforeAll(allowPrivateNetwork)
afterAll(async () => {
  denyPrivateNetwork()
  await vendor.stop()
})
// All requests and answers of every test have to match PayPal's documents.
afterEach(() => expect(vendor.flaws).toEqual([]))

vendor.plan('P-PRO', '20.00')
vendor.plan('P-TRIED', '20.00', 'USD', true)
vendor.plan('P-YEN', '900', 'JPY')
const connection = vendor.connection()
const resolvedConnection = createResolvedConnection(connection)
const externalIds = { monthlyPlanId: 'P-PRO' }
const checkoutRequests = () => vendor.asked('POST', /billing\/subscriptions$/)

test.skipIf(!hasSpecs)('the fake PayPal checks requests and answers against the published API documents', async () => {
  const answer = await fetch(`${vendor.url}/v1/oauth2/token`, {
    method: 'POST',
    body: 'grant_type=client_credentials',
    headers: { authorization: `Basic ${btoa('x:y')}` },
  })
  expect(answer.status).toBe(401)
  vendor.happened('BILLING.SUBSCRIPTION.CREATED', 'no object')
  expect(vendor.flaws.splice(0)).toHaveLength(1)
})

test('a PayPal checkout creates a subscription that awaits approval, and returns the address to approve it', async () => {
  const one = createOrder({ externalIds })
  const { checkoutUrl, clientToken, externalSubscriptionId } = await paypal.createCheckout(resolvedConnection, one)
  expect([checkoutUrl, clientToken]).toEqual([
    `https://www.paypal.com/webapps/billing/subscriptions?ba_token=BA-${externalSubscriptionId}`,
    null,
  ])
  const { body, headers } = checkoutRequests().at(-1)!
  expect(body).toEqual({
    plan_id: 'P-PRO',
    custom_id: one.subscriptionId,
    subscriber: { name: { given_name: 'Ada', surname: 'King Lovelace' }, email_address: 'ada@example.com' },
    application_context: {
      return_url: one.successUrl,
      cancel_url: one.cancelUrl,
      user_action: 'SUBSCRIBE_NOW',
      shipping_preference: 'NO_SHIPPING',
    },
  })
  expect(headers['paypal-request-id']).toBe(one.key)
})

test('a PayPal checkout overrides the price of the regular cycle for a dynamic amount and for a coupon', async () => {
  const made = [
    createOrder({ dynamic: true, isPlanPrice: false, amount: 1234, externalIds }),
    createOrder({ isPlanPrice: false, amount: 1500, externalIds: { monthlyPlanId: 'P-TRIED' } }),
    createOrder({ isPlanPrice: false, amount: 500, currency: 'JPY', externalIds: { monthlyPlanId: 'P-YEN' } }),
  ]
  const overrides = []
  for (const one of made) {
    await paypal.createCheckout(resolvedConnection, one)
    overrides.push(checkoutRequests().at(-1)!.body.plan.billing_cycles)
  }
  const fixed = (value: string, currency_code = 'USD') => ({ fixed_price: { currency_code, value } })
  expect(overrides).toEqual([
    [{ sequence: 1, pricing_scheme: fixed('12.34') }],
    [{ sequence: 2, pricing_scheme: fixed('15.00') }],
    [{ sequence: 1, pricing_scheme: fixed('500', 'JPY') }],
  ])
})

test('a PayPal checkout without a plan id is rejected with 400 MISSING_EXTERNAL_PRICE_ID before PayPal is asked', async () => {
  const before = vendor.seen.length
  const yearly = createOrder({ externalIds, billingCycle: 'yearly' })
  expect(await errorOf(paypal.createCheckout(resolvedConnection, yearly))).toMatchObject({
    status: 400,
    code: 'MISSING_EXTERNAL_PRICE_ID',
  })
  expect(vendor.seen).toHaveLength(before)
})

test('an access token of PayPal is shared by requests, and renewed when it is rejected, about to expire or of another secret', async () => {
  const grants = () => vendor.asked('POST', /oauth2\/token$/).length
  const fresh = createResolvedConnection(vendor.connection())
  const before = grants()
  await Promise.all([1, 2, 3].map(() => paypal.createCheckout(fresh, createOrder({ externalIds }))))
  expect(grants() - before).toBe(1)
  vendor.own.nextFailures = [{ status: 401 }]
  await paypal.createCheckout(fresh, createOrder({ externalIds }))
  expect(grants() - before).toBe(2)
  vendor.terms.expires = 30
  const short = createResolvedConnection(vendor.connection())
  for (const _ of [1, 2]) await paypal.createCheckout(short, createOrder({ externalIds }))
  expect(grants() - before).toBe(4)
  vendor.terms.expires = 32_400
  // A changed secret needs a new token, though the connection is the same.
  const changed = { ...connection, _id: (fresh as { _id: string })._id, authentication: { clientSecret: 'wrong' } }
  expect(
    await captureLeaks(['wrong'], () => paypal.createCheckout(changed as never, createOrder({ externalIds }))),
  ).toEqual(PROVIDER_ERROR_WITHOUT_LEAK)
})

test('a PayPal checkout whose answer was lost creates one subscription', async () => {
  const one = createOrder({ externalIds })
  await paypal.createCheckout(resolvedConnection, createOrder({ externalIds }))
  const before = vendor.subscriptions.size
  vendor.own.nextFailures = ['lost']
  const first = await paypal.createCheckout(resolvedConnection, one)
  expect(await paypal.createCheckout(resolvedConnection, one)).toEqual(first)
  expect(vendor.subscriptions.size - before).toBe(1)
})

const buySubscription = async () => {
  const { externalSubscriptionId } = await paypal.createCheckout(resolvedConnection, createOrder({ externalIds }))
  vendor.approve(externalSubscriptionId!)
  return externalSubscriptionId!
}

test('cancel ends a PayPal subscription, and ignores unapproved and unknown ones', async () => {
  const id = await buySubscription()
  await paypal.cancel(resolvedConnection, createSubscriptionRow({ externalSubscriptionId: id }))
  await paypal.cancel(resolvedConnection, createSubscriptionRow({ externalSubscriptionId: id }))
  expect(vendor.subscriptions.get(id).status).toBe('CANCELLED')
  const { externalSubscriptionId } = await paypal.createCheckout(resolvedConnection, createOrder({ externalIds }))
  await paypal.cancel(resolvedConnection, createSubscriptionRow({ externalSubscriptionId }))
  await paypal.cancel(resolvedConnection, createSubscriptionRow({ externalSubscriptionId: 'I-NOBODY' }))
  await paypal.cancel(resolvedConnection, createSubscriptionRow({}))
})

test('reprice changes the next PayPal cycles and ignores an unknown subscription', async () => {
  const id = await buySubscription()
  await paypal.reprice(resolvedConnection, createSubscriptionRow({ externalSubscriptionId: id }), 4205)
  expect(vendor.subscriptions.get(id).price).toEqual({ currency_code: 'USD', value: '42.05' })
  // A subscription that no longer exists is ignored.
  await paypal.reprice(resolvedConnection, createSubscriptionRow({ externalSubscriptionId: 'I-NOBODY' }), 4200)
})

test('fetchSubscription returns the status, period and invoices of a PayPal subscription, or undefined for an unknown one', async () => {
  const id = await buySubscription()
  const sale = vendor.bill(id)
  const found = await paypal.fetchSubscription(resolvedConnection, id)
  expect(found).toMatchObject({ externalSubscriptionId: id, status: 'active' })
  expect(found!.periodEnd).toBeGreaterThan(found!.periodStart!)
  expect(found!.invoices).toHaveLength(2)
  expect(found!.invoices[1]).toMatchObject({ externalInvoiceId: sale, amount: 2000, currency: 'USD', status: 'paid' })
  expect(await paypal.fetchSubscription(resolvedConnection, 'I-NOBODY')).toBeUndefined()
  const waiting = await paypal.createCheckout(resolvedConnection, createOrder({ externalIds }))
  expect(await paypal.fetchSubscription(resolvedConnection, waiting.externalSubscriptionId!)).toMatchObject({
    status: 'pending',
  })
})

test('fetchSubscription reads all pages of PayPal transactions', async () => {
  const id = await buySubscription()
  vendor.terms.page = 2
  for (let n = 0; n < 4; n++) vendor.bill(id)
  const { invoices } = (await paypal.fetchSubscription(resolvedConnection, id))!
  expect(new Set(invoices.map(({ externalInvoiceId }) => externalInvoiceId)).size).toBe(5)
  vendor.terms.page = 20
})

test('fetchSubscription returns PayPal payments that were refunded, in part or whole, as paid', async () => {
  const id = await buySubscription()
  for (const status of ['PARTIALLY_REFUNDED', 'REFUNDED', 'PENDING', 'DECLINED']) {
    vendor.bill(id)
    vendor.transactions.get(id)!.at(-1).status = status
  }
  const { invoices } = (await paypal.fetchSubscription(resolvedConnection, id))!
  expect(invoices.map(({ status, amount }) => [status, amount])).toEqual(Array(3).fill(['paid', 2000]))
})

test('PayPal amounts are written and read with the decimals that PayPal uses for each currency', () => {
  const written = [
    ['USD', 5, '0.05'],
    ['USD', 123_456, '1234.56'],
    ['JPY', 500, '500'],
    ['HUF', 50_000, '500'],
    ['TND', 12_345, '12.345'],
  ] as const
  for (const [currency, minor, value] of written) {
    expect([currency, toPaypalMoney(minor, currency).value]).toEqual([currency, value])
    expect([currency, fromPaypalAmount(value, currency)]).toEqual([currency, minor])
  }
  expect(['20', '20.0', '-3.5', '', 'many', undefined].map((value) => fromPaypalAmount(value, 'USD'))).toEqual([
    2000, 2000, -350, 0, 0, 0,
  ])
})
