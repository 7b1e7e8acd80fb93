import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { moveClock } from '../../src/core/clock'
import { addSpan, periodAfter } from '../../src/payments/billing-period'
import { startPaddle } from '../fakes/vendors/paddle'
import { startPaypal } from '../fakes/vendors/paypal'
import { startStripe } from '../fakes/vendors/stripe'
import { allowPrivateNetwork, denyPrivateNetwork } from '../plugins/fixtures'
import { statusAndCode } from '../test-tenant'
import { createPaymentsFixture, expectOk } from './fixtures'
import { deliver } from './webhooks/webhook-fixtures'

setDefaultTimeout(60_000)
allowPrivateNetwork()
const [stripe, paypal, paddle] = [await startStripe(), await startPaypal(), await startPaddle()]
const bare = await createPaymentsFixture()
const atStripe = await createPaymentsFixture(stripe.connection())
const atPaypal = await createPaymentsFixture(paypal.connection())
const atPaddle = await createPaymentsFixture(paddle.connection())
beforeAll(() => allowPrivateNetwork())
afterEach(() => moveClock())
afterAll(async () => {
  denyPrivateNetwork()
  await stripe.stop()
  await paypal.stop()
  await paddle.stop()
})

const shops = { nobody: bare, Stripe: atStripe, PayPal: atPaypal, Paddle: atPaddle }
const DAY = 86_400_000

describe('amounts that a currency or a provider cannot hold', () => {
  test.each([
    ['nobody', 'USD', 9.999, false],
    ['nobody', 'USD', 9.99, true],
    ['nobody', 'UGX', 100.5, false],
    ['nobody', 'UGX', 100, true],
    ['nobody', 'JPY', 999.5, false],
    ['nobody', 'KWD', 1.234, true],
    ['nobody', 'KWD', 1.2345, false],
    ['nobody', 'MGA', 5.4, true],
    ['Stripe', 'KWD', 1.234, false],
    ['Stripe', 'KWD', 1.23, true],
    ['Stripe', 'MGA', 5.4, false],
    ['Stripe', 'MGA', 5, true],
    ['Stripe', 'HUF', 1999.5, true],
    ['PayPal', 'HUF', 1999.5, false],
    ['PayPal', 'TWD', 10.5, false],
    ['PayPal', 'HUF', 2000, true],
    ['Paddle', 'HUF', 1999.5, true],
    ['Paddle', 'HUF', 1999.555, false],
    ['Paddle', 'TWD', 10.5, true],
    ['Paddle', 'JPY', 999.5, false],
    ['Paddle', 'JPY', 999, true],
  ] as const)('connected to %s, a price of %s %p is taken: %p', async (shop, currency, price, isTaken) => {
    const { admin } = shops[shop]
    const plan = { name: 'Plan', currency, monthlyPrice: price, yearlyPrice: price }
    const { status, body } = await admin.post('/plans', plan)
    if (isTaken) return expect([status, body.monthlyPrice]).toEqual([200, price])
    expect([status, body.code, body.details[0].path]).toEqual([400, 'INVALID_AMOUNT', '/monthlyPrice'])
    const coupon = { code: `c${currency}${price}`, discountType: 'fixed', discountValue: price, currency }
    expect(statusAndCode(await admin.post('/coupons', coupon))).toEqual([400, 'INVALID_COUPON_DATA'])
    const dynamic = await expectOk(admin.post('/plans', { name: 'Dynamic', dynamic: true, currency }))
    const checkout = { planId: dynamic._id, billingCycle: 'monthly', amount: price }
    expect(statusAndCode(await admin.post('/checkout', checkout))).toEqual([400, 'INVALID_AMOUNT'])
    const preview = admin.post(`/plans/${dynamic._id}/price-preview`, { billingCycle: 'monthly', amount: price })
    expect(statusAndCode(await preview)).toEqual([400, 'INVALID_AMOUNT'])
  })

  test('a change of the currency refuses the price that it cannot hold', async () => {
    const { _id } = await expectOk(bare.admin.post('/plans', { name: 'P', monthlyPrice: 19.99, yearlyPrice: 200 }))
    expect(statusAndCode(await bare.admin.put(`/plans/${_id}`, { currency: 'JPY' }))).toEqual([400, 'INVALID_AMOUNT'])
  })

  test('connecting a provider warns of stored prices that it cannot charge; they come back unchanged, and checkout refuses them', async () => {
    const own = await createPaymentsFixture()
    const dinars = { name: 'Dinars', currency: 'KWD', monthlyPrice: 1.234, yearlyPrice: 12 }
    const plan = await own.createPlan(dinars)
    const source = await expectOk(own.admin.post('/integration-sources', stripe.connection()), 201)
    const metadata = { isEnabled: true, paymentSourceId: source._id }
    const { warnings } = await expectOk(own.admin.put('/payments/configuration', { metadata }))
    expect(warnings).toEqual([{ path: '/metadata/paymentSourceId', message: expect.stringContaining('"Dinars"') }])
    const changed = await expectOk(own.admin.put(`/plans/${plan._id}`, { ...plan, description: 'Cheap' }))
    expect([changed.monthlyPrice, changed.description]).toEqual([1.234, 'Cheap'])
    const checkout = { planId: plan._id, billingCycle: 'monthly' }
    expect(statusAndCode(await own.admin.post('/checkout', checkout))).toEqual([400, 'INVALID_AMOUNT'])
  })

  test('a discounted price is rounded to what the provider can hold, half away from zero', async () => {
    const { admin, createPlan, createCoupon } = atStripe
    const plan = await createPlan({ name: 'Dinars', currency: 'KWD', monthlyPrice: 1.25, yearlyPrice: 12 })
    const { code } = await createCoupon({ discountValue: 10 })
    const preview = { billingCycle: 'monthly', couponCode: code, payments: 1 }
    // 1.125 is halfway between 1.12 and 1.13.
    expect((await expectOk(admin.post(`/plans/${plan._id}/price-preview`, preview))).total).toBe(1.13)
    const client = await atStripe.createCustomer()
    const order = { planId: plan._id, billingCycle: 'monthly', couponCode: code }
    const { subscriptionId } = await expectOk(client.post('/checkout', order))
    expect((await expectOk(client.get(`/subscriptions/${subscriptionId}`))).finalPrice).toBe(1.13)
    const [asked] = stripe.asked('POST', /checkout\/sessions$/).slice(-1)
    expect((Object.values(asked!.body.line_items)[0] as Any).price_data.unit_amount).toBe('1130')
  })
})

// biome-ignore lint/suspicious/noExplicitAny: the body of a request to a vendor
type Any = any

describe('parameters of payments that do not exist yet', () => {
  test.each([
    ...['trialDays', 'trialPeriodDays', 'trial', 'trialRequiresPaymentMethod'],
    ...['seats', 'quantity', 'meters', 'family'],
  ])('a plan with %s is refused by name, when it is created and changed', async (key) => {
    const { admin, pro } = bare
    for (const answer of [
      await admin.post('/plans', { name: 'P', monthlyPrice: 1, yearlyPrice: 1, [key]: 14 }),
      await admin.put(`/plans/${pro}`, { [key]: 14 }),
    ])
      expect([answer.status, answer.body.details[0].path]).toEqual([400, `/${key}`])
  })

  test('plans and coupons can be sent back as they were read', async () => {
    const { admin, pro } = bare
    const plan = (await admin.get('/plans')).body.find(({ _id }: { _id: string }) => _id === pro)
    expect((await admin.put(`/plans/${pro}`, plan)).status).toBe(200)
    const coupon = { code: 'READ-BACK', discountType: 'percentage', discountValue: 5 }
    const made = (await admin.post('/coupons', coupon)).body
    expect((await admin.put(`/coupons/${made._id}`, made)).status).toBe(200)
  })

  test('a checkout refuses quantities and products', async () => {
    for (const key of ['quantity', 'productId']) {
      const body = { planId: bare.pro, billingCycle: 'monthly', [key]: 2 }
      expect((await bare.admin.post('/checkout', body)).body.details[0].path).toBe(`/${key}`)
    }
  })

  test('a cancellation at the end of the period is refused, and changes nothing', async () => {
    const id = await bare.createPending()
    for (const path of [`/subscriptions/${id}/cancel`, `/checkout/${id}/cancel`]) {
      const answer = await bare.as('user').put(path, { atPeriodEnd: true })
      expect([answer.status, answer.body.details[0].path]).toEqual([400, '/atPeriodEnd'])
    }
    expect(await bare.status(id)).toBe('pending')
    expect((await expectOk(bare.as('user').put(`/subscriptions/${id}/cancel`, { atPeriodEnd: false }))).status).toBe(
      'canceled',
    )
  })

  test('the payments configuration refuses unknown keys', async () => {
    const { status, body } = await bare.admin.put('/payments/configuration', { metadata: { automaticTax: true } })
    expect([status, body.details[0].path]).toEqual([400, '/metadata/automaticTax'])
    const flat = await bare.admin.put('/payments/configuration', { automaticTax: true })
    expect([flat.status, flat.body.details[0].path]).toEqual([400, '/automaticTax'])
  })
})

describe('a coupon of 100 % that ends', () => {
  const benefit = { discountValue: 100, benefitDurationUnit: 'months', benefitDurationValue: 1 }

  test('it goes by the provider, and the price is charged when its benefit ends', async () => {
    const { code } = await atStripe.createCoupon(benefit)
    const client = await atStripe.createCustomer()
    const order = { planId: atStripe.pro, billingCycle: 'monthly', couponCode: code }
    const { subscriptionId: id, checkoutUrl } = await expectOk(client.post('/checkout', order))
    const external = stripe.pay(checkoutUrl.split('/').at(-1))
    for (const event of stripe.events.splice(0)) await deliver(atStripe, 'stripe', stripe.signEvent(event))
    expect(await expectOk(client.get(`/subscriptions/${id}`))).toMatchObject({ status: 'active', finalPrice: 0 })
    const price = () => stripe.subscriptions.get(external).items.data[0].price.unit_amount
    expect(price()).toBe(0)
    await atStripe.advanceClock(32 * DAY)
    expect([price(), (await expectOk(client.get(`/subscriptions/${id}`))).finalPrice]).toEqual([2000, 20])
  })

  test('PayPal, which cannot begin for free, refuses it', async () => {
    const { code } = await atPaypal.createCoupon(benefit)
    const externalIds = { paypal: { monthlyPlanId: 'P-X' } }
    const plan = await atPaypal.createPlan({ name: 'P', monthlyPrice: 20, yearlyPrice: 200, externalIds })
    const order = { planId: plan._id, billingCycle: 'monthly', couponCode: code }
    expect(statusAndCode(await atPaypal.admin.post('/checkout', order))).toEqual([400, 'COUPON_NOT_APPLICABLE'])
  })
})

test('periods are counted from their anchor', () => {
  const anchor = Date.parse('2026-01-31T00:00:00Z')
  const month = { unit: 'months', value: 1 } as const
  let end = anchor
  const ends = Array.from({ length: 4 }, () => {
    end = periodAfter(anchor, month, end).end
    return new Date(end).toISOString().slice(0, 10)
  })
  expect(ends).toEqual(['2026-02-28', '2026-03-31', '2026-04-30', '2026-05-31'])
  expect(addSpan(anchor, month)).toBe(Date.parse('2026-02-28'))
})
