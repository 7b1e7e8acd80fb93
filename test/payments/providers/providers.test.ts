import { afterAll, expect, test } from 'bun:test'
import { providerOf } from '../../../src/payments/providers'
import type { ProviderKind } from '../../../src/payments/providers/provider'
import { startPaddle } from '../../fakes/vendors/paddle'
import { startPaypal } from '../../fakes/vendors/paypal'
import { STRIPE_KEY, startStripe } from '../../fakes/vendors/stripe'
import type { SignedWebhook } from '../../fakes/vendors/vendor'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { statusAndCode } from '../../test-tenant'
import { createPaymentsFixture, expectOk } from '../fixtures'
import { deliver } from '../webhooks/webhook-fixtures'
import {
  captureLeaks,
  createOrder,
  createResolvedConnection,
  createSubscriptionRow,
  PROVIDER_ERROR_WITHOUT_LEAK,
} from './provider-fixtures'

allowPrivateNetwork()
const [stripe, paypal, paddle] = [await startStripe(), await startPaypal(), await startPaddle()]
stripe.price('price_pro', 2000)
paypal.plan('P-PRO', '20.00')
paddle.price('pri_pro', '2000')
afterAll(async () => {
  denyPrivateNetwork()
  await Promise.all([stripe.stop(), paypal.stop(), paddle.stop()])
})

const lastKey = (things: Map<string, unknown>) => [...things.keys()].at(-1)!

/** The differences: the ids of the price, the secret, how to pay, and how to read the price and the end at the provider. */
const kinds = {
  stripe: {
    vendor: stripe,
    externalIds: { monthlyPriceId: 'price_pro' },
    secret: STRIPE_KEY,
    pay: () => stripe.pay(lastKey(stripe.sessions))!,
    price: (id: string) => stripe.subscriptions.get(id).items.data[0].price.unit_amount / 100,
    ended: (id: string) => stripe.subscriptions.get(id).status === 'canceled',
  },
  paypal: {
    vendor: paypal,
    externalIds: { monthlyPlanId: 'P-PRO' },
    secret: paypal.connection().authentication.clientSecret,
    pay: () => {
      const id = lastKey(paypal.subscriptions)
      paypal.approve(id)
      return id
    },
    price: (id: string) => Number(paypal.subscriptions.get(id).price.value),
    ended: (id: string) => paypal.subscriptions.get(id).status === 'CANCELLED',
  },
  paddle: {
    vendor: paddle,
    externalIds: { monthlyPriceId: 'pri_pro' },
    secret: paddle.connection().authentication.apiKey,
    pay: () => paddle.pay(lastKey(paddle.transactions)),
    price: (id: string) => paddle.subscriptions.get(id).items[0].price.unit_price.amount / 100,
    ended: (id: string) => paddle.subscriptions.get(id).status === 'canceled',
  },
} satisfies Record<ProviderKind, unknown>

const kindNames = Object.keys(kinds) as ProviderKind[]

test.each(kindNames)('a checkout at %s that fails gets 502 PROVIDER_ERROR, and leaks no secret', async (kind) => {
  const { vendor, externalIds, secret } = kinds[kind]
  const startCheckout = (connection: object) => () =>
    providerOf(kind).createCheckout(createResolvedConnection(connection), createOrder({ externalIds }))
  const connection = vendor.connection()
  for (const failure of ['down', ...[400, 402, 403, 422, 500].map((status) => ({ status }))] as const) {
    vendor.own.failWhen = () => failure
    expect(await captureLeaks([secret], startCheckout(connection))).toEqual(PROVIDER_ERROR_WITHOUT_LEAK)
  }
  vendor.own.failWhen = () => undefined
  const withoutSecrets = { ...connection, authentication: {} }
  expect(await captureLeaks([secret], startCheckout(withoutSecrets))).toEqual(PROVIDER_ERROR_WITHOUT_LEAK)
})

test.each(kindNames)(
  'a cancellation at %s that fails gets 502 PROVIDER_ERROR, leaks no secret, and succeeds when it is repeated',
  async (kind) => {
    const { vendor, externalIds, secret, pay, ended } = kinds[kind]
    const connection = createResolvedConnection(vendor.connection())
    await providerOf(kind).createCheckout(connection, createOrder({ externalIds }))
    const external = pay()
    const row = createSubscriptionRow({ externalSubscriptionId: external })
    const cancel = () => providerOf(kind).cancel(connection, row)
    // Providers repeat a failure with a 5xx status under the same key, so the retry needs another key.
    for (const status of [409, 422, 500]) {
      vendor.own.nextFailures = [{ status }]
      expect(await captureLeaks([secret], cancel)).toEqual(PROVIDER_ERROR_WITHOUT_LEAK)
      expect(ended(external)).toBeFalse()
    }
    for (const _ of [1, 2]) expect(await cancel()).toBeTrue()
    expect(ended(external)).toBeTrue()
  },
)

test.each(kindNames)(
  'a customer subscribes by %s with a coupon, is repriced without it, and cancels, here and at the provider',
  async (kind) => {
    const { vendor, externalIds, pay, price, ended } = kinds[kind]
    const at = await createPaymentsFixture(vendor.connection())
    await expectOk(at.admin.put(`/plans/${at.pro}`, { externalIds: { [kind]: externalIds } }))
    const deliverEvents = async () => {
      for (const event of vendor.events.splice(0)) {
        const sent = deliver(
          at,
          kind,
          (vendor.signEvent as (event: unknown) => SignedWebhook | Promise<SignedWebhook>)(event),
        )
        expect((await sent).status, JSON.stringify(event)).toBe(200)
      }
    }
    vendor.events.length = 0

    const { _id: coupon, code } = await at.createCoupon({ discountValue: 25 })
    const user = at.as('user')
    const monthly = { planId: at.pro, billingCycle: 'monthly' }
    const checkout = await expectOk(user.post('/checkout', { ...monthly, couponCode: code }))
    expect(checkout.checkoutUrl ?? checkout.clientToken).toBeString()
    const external = pay()
    expect(price(external)).toBe(15)
    await deliverEvents()
    const mine = await expectOk(user.get('/subscriptions/me'))
    expect(mine).toMatchObject({
      ...{ _id: checkout.subscriptionId, status: 'active', externalSubscriptionId: external, providerKind: kind },
      ...{ finalPrice: 15, couponId: coupon, limits: { projects: 2 } },
    })
    expect((await expectOk(at.admin.get(`/coupons/${coupon}`))).currentRedemptions).toBe(1)
    expect((await expectOk(user.get('/invoices'))).map(({ status }: { status: string }) => status)).toEqual(['paid'])
    expect(await expectOk(user.get(`/invoices?subscriptionId=${mine._id}`))).toHaveLength(1)
    expect(await expectOk(user.get(`/invoices?subscriptionId=${coupon}`))).toEqual([])
    expect(statusAndCode(await user.post('/checkout', monthly))).toEqual([409, 'ACTIVE_SUBSCRIPTION_EXISTS'])

    await expectOk(at.admin.put(`/subscriptions/${mine._id}/coupon`, { couponCode: null }))
    expect(price(external)).toBe(20)
    await deliverEvents()
    expect((await expectOk(user.get('/subscriptions/me'))).finalPrice).toBe(20)

    expect((await expectOk(user.put(`/checkout/${mine._id}/cancel`))).status).toBe('canceled')
    expect(ended(external)).toBeTrue()
    await deliverEvents()
    expect(await expectOk(user.get('/subscriptions/me'))).toBeNull()
    expect((await at.events()).filter((name) => name === 'webhook-failed')).toEqual([])
    expect(paypal.flaws).toEqual([])
  },
)
