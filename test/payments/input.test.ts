import { afterAll, expect, test } from 'bun:test'
import { startStripe } from '../fakes/vendors/stripe'
import { allowPrivateNetwork, denyPrivateNetwork } from '../plugins/fixtures'
import { statusAndCode } from '../test-tenant'
import { createPaymentsFixture, expectOk } from './fixtures'

allowPrivateNetwork()
const stripe = await startStripe()
const at = await createPaymentsFixture(stripe.connection())
const { admin } = at
const monthly = { planId: at.pro, billingCycle: 'monthly' }
afterAll(async () => {
  denyPrivateNetwork()
  await stripe.stop()
})

test('POST /checkout rejects an invalid e-mail address of the customer with 400 INVALID_INPUT and asks no provider', async () => {
  const requestCount = stripe.seen.length
  for (const email of ['nobody', ' ', 'a b@c.de', 'a@b.de\r\nBcc: all@b.de'])
    expect(statusAndCode(await at.as('user').post('/checkout', { ...monthly, customer: { email } })), email).toEqual([
      ...[400, 'INVALID_INPUT'],
    ])
  expect(stripe.seen.length).toBe(requestCount)
})

test('POST /plans rejects a price below the smallest unit with 400 INVALID_AMOUNT', async () => {
  for (const monthlyPrice of [0.004, 0.005, 1e-7])
    expect(statusAndCode(await admin.post('/plans', { name: 'Cheap', monthlyPrice, yearlyPrice: 1 }))).toEqual([
      ...[400, 'INVALID_AMOUNT'],
    ])
  expect((await at.createPlan({ name: 'Cheap', monthlyPrice: 0.01, yearlyPrice: 0 })).monthlyPrice).toBe(0.01)
})

test('POST /coupons accepts existing dates and times as validUntil, and rejects others with 400 INVALID_COUPON_DATA', async () => {
  const createCoupon = (validUntil: string) =>
    admin.post('/coupons', { code: crypto.randomUUID(), discountType: 'percentage', discountValue: 1, validUntil })
  for (const when of ['2027-02-30', '1', '+200000-01-01T00:00:00Z', '2027-01-01T25:00:00Z', 'tomorrow', ''])
    expect(statusAndCode(await createCoupon(when)), when).toEqual([400, 'INVALID_COUPON_DATA'])
  for (const when of ['2027-02-28', '2027-01-31T12:00:00Z', '2027-01-31T12:00:00.000+01:00'])
    expect((await expectOk(createCoupon(when), 201)).validUntil).toBe(new Date(when).toISOString())
})

test('GET /plans, /plans/public and /coupons reject an unknown isActive value with 400 INVALID_INPUT', async () => {
  for (const path of ['/plans', '/plans/public', '/coupons']) {
    expect(statusAndCode(await admin.get(`${path}?isActive=maybe`)), path).toEqual([400, 'INVALID_INPUT'])
    for (const word of ['undefined', '', '1', 'false']) await expectOk(admin.get(`${path}?isActive=${word}`))
  }
})

test('redirect URLs with control characters, spaces or credentials are rejected with 400', async () => {
  const client = await at.createCustomer()
  for (const url of [
    'https://a.test/\r\nx: y',
    'https://a.test/\t',
    'https://a b.test/',
    'https://shop.test@evil.test/',
  ])
    for (const name of ['successUrl', 'cancelUrl']) {
      expect(statusAndCode(await client.post('/checkout', { ...monthly, [name]: url })), url).toEqual([
        ...[400, 'INVALID_REDIRECT_URL'],
      ])
      expect(statusAndCode(await admin.put('/payments/configuration', { metadata: { [name]: url } })), url).toEqual([
        ...[400, 'INVALID_PAYMENTS_CONFIGURATION'],
      ])
    }
  const successUrl = 'https://a.test/thanks?session={CHECKOUT_SESSION_ID}#a@b'
  await expectOk(client.post('/checkout', { ...monthly, successUrl }))
})

test('POST /coupons/validate ignores plan restrictions when planId is null or missing', async () => {
  const { code } = await at.createCoupon({ applicablePlanIds: [at.free] })
  for (const planId of [null, undefined]) await expectOk(at.anonymous.post('/coupons/validate', { code, planId }))
})
