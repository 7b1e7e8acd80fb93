import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import { moveClock } from '../../../src/core/clock'
import { startStripe } from '../../fakes/vendors/stripe'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { statusAndCode } from '../../test-tenant'
import { createPaymentsFixture, expectOk } from '../fixtures'

allowPrivateNetwork()
const stripe = await startStripe()
const at = await createPaymentsFixture(stripe.connection())
const { admin } = at
const PROVIDER_ERROR = [502, 'PROVIDER_ERROR']
afterEach(() => {
  moveClock()
  stripe.own.nextFailures = []
})
afterAll(async () => {
  denyPrivateNetwork()
  await stripe.stop()
})

const NOON = Date.parse('2026-01-31T12:00:00.000Z')

/** Creates a subscription that has been paid by Stripe since the end of January. */
async function createPaidSubscription(planId = at.pro, amount?: number) {
  moveClock(NOON)
  const client = await at.createCustomer()
  const { _id: id } = await expectOk(client.post('/subscriptions', { planId, billingCycle: 'monthly' }))
  if (amount) await expectOk(admin.put(`/subscriptions/${id}/dynamic-amount`, { amount }))
  await expectOk(client.post('/checkout', { subscriptionId: id }))
  const external = stripe.pay([...stripe.sessions.keys()].at(-1)!)!
  const period = { periodStart: NOON, periodEnd: NOON + 28 * 86_400_000 }
  await at.applyTrigger(id, 'activated', { occurredAt: NOON, externalSubscriptionId: external, ...period })
  return {
    ...{ id, client },
    price: () => stripe.subscriptions.get(external).items.data[0].price.unit_amount as number,
    attach: (couponCode: string | null) => admin.put(`/subscriptions/${id}/coupon`, { couponCode }),
    row: () => expectOk(admin.get(`/subscriptions/${id}`)),
  }
}
/** Returns the coupons that events report as redeemed for a subscription. */
const listRedeemedCoupons = async (id: string): Promise<unknown[]> => {
  const events = await expectOk(admin.get('/events?source=payments&eventName=coupon-redeemed&limit=1000'))
  const matching = events.filter(
    ({ metadata }: { metadata: { subscriptionId: string } }) => metadata.subscriptionId === id,
  )
  return matching.map(({ metadata }: { metadata: Record<string, string> }) => [metadata.couponId, metadata.couponCode])
}
const countRedemptions = async ({ _id }: { _id: string }) =>
  (await expectOk(admin.get(`/coupons/${_id}`))).currentRedemptions

describe('coupons of a subscription', () => {
  test('a coupon attached to an active subscription is redeemed at once and only once, and changes the price at the provider', async () => {
    const one = await createPaidSubscription()
    const coupon = await at.createCoupon({ maxRedemptions: 1, benefitDurationUnit: 'months', benefitDurationValue: 1 })
    const attached = await expectOk(one.attach(coupon.code))
    expect(attached).toMatchObject({ couponId: coupon._id, couponCode: coupon.code, finalPrice: 10, status: 'active' })
    // The benefit of a month from January 31 ends on the last day of February.
    expect(attached.couponBenefitEndsAt).toBe('2026-02-28T12:00:00.000Z')
    expect([one.price(), await countRedemptions(coupon), await listRedeemedCoupons(one.id)]).toEqual([
      1000,
      1,
      [[coupon._id, coupon.code]],
    ])
    // Attaching the same code again changes nothing, though it is no longer valid.
    await expectOk(admin.delete(`/coupons/${coupon._id}`))
    expect(await expectOk(one.attach(coupon.code.toUpperCase()))).toMatchObject({
      couponId: coupon._id,
      finalPrice: attached.finalPrice,
    })
    expect(await countRedemptions(coupon)).toBe(1)
    expect(await expectOk(one.attach(null))).toMatchObject({
      couponId: null,
      couponCode: null,
      couponBenefitEndsAt: null,
      finalPrice: 20,
    })
    expect([one.price(), await countRedemptions(coupon)]).toEqual([2000, 1])
  })

  test('a coupon attached to a pending subscription is redeemed by its activation, and its benefit counts from the period start', async () => {
    const coupon = await at.createCoupon({ benefitDurationUnit: 'days', benefitDurationValue: 10 })
    const id = await at.createPending('user')
    const attached = await expectOk(admin.put(`/subscriptions/${id}/coupon`, { couponCode: coupon.code }))
    expect([attached.status, attached.finalPrice, await countRedemptions(coupon)]).toEqual(['pending', 10, 0])
    await at.applyTrigger(id, 'activated', { occurredAt: NOON, periodStart: NOON, periodEnd: NOON + 86_400_000 })
    const row = await expectOk(admin.get(`/subscriptions/${id}`))
    expect([row.couponBenefitEndsAt, await countRedemptions(coupon)]).toEqual(['2026-02-10T12:00:00.000Z', 1])
    expect(await listRedeemedCoupons(id)).toEqual([[coupon._id, coupon.code]])
    await at.applyTrigger(id, 'canceled', { occurredAt: NOON + 1 })
  })

  test('a coupon whose benefit has ended no longer lowers the price, and the subscription stays active', async () => {
    const one = await createPaidSubscription()
    const coupon = await at.createCoupon({ benefitDurationUnit: 'days', benefitDurationValue: 10 })
    expect((await expectOk(one.attach(coupon.code))).finalPrice).toBe(10)
    moveClock(NOON + 9 * 86_400_000)
    expect((await one.row()).finalPrice).toBe(10)
    moveClock(NOON + 11 * 86_400_000)
    expect(await one.row()).toMatchObject({ status: 'active', basePrice: 20, finalPrice: 20, couponId: coupon._id })
  })

  test('PUT /subscriptions/:id/coupon rejects an unknown coupon with 404 and an inapplicable one with 400', async () => {
    const one = await createPaidSubscription()
    const cases: [object, unknown[]][] = [
      [{ isActive: false }, [404, 'COUPON_NOT_FOUND']],
      [{ validUntil: '2020-01-01' }, [400, 'COUPON_EXPIRED']],
      [{ maxRedemptions: 0 }, [400, 'COUPON_MAX_REDEMPTIONS']],
      [{ applicablePlanIds: [at.free] }, [400, 'COUPON_NOT_APPLICABLE']],
    ]
    for (const [body, expected] of cases)
      expect(statusAndCode(await one.attach((await at.createCoupon(body)).code))).toEqual(expected)
    expect(statusAndCode(await one.attach('nothing'))).toEqual([404, 'COUPON_NOT_FOUND'])
    for (const body of [{}, { couponCode: 5 }])
      expect(statusAndCode(await admin.put(`/subscriptions/${one.id}/coupon`, body))).toEqual([400, 'INVALID_INPUT'])
    expect([(await one.row()).couponId, one.price()]).toEqual([null, 2000])
  })

  test('a coupon is neither attached nor redeemed when the provider fails with 502 PROVIDER_ERROR', async () => {
    const one = await createPaidSubscription()
    const coupon = await at.createCoupon({})
    stripe.own.nextFailures = Array(6).fill('down')
    expect(statusAndCode(await one.attach(coupon.code))).toEqual(PROVIDER_ERROR)
    expect([(await one.row()).couponId, one.price(), await countRedemptions(coupon)]).toEqual([null, 2000, 0])
  })

  test('a payment whose coupon is used up activates the subscription without it and reprices it at the provider', async () => {
    const coupon = await at.createCoupon({ maxRedemptions: 1 })
    const client = await at.createCustomer()
    const { subscriptionId } = await expectOk(
      client.post('/checkout', { planId: at.pro, billingCycle: 'monthly', couponCode: coupon.code }),
    )
    const external = stripe.pay([...stripe.sessions.keys()].at(-1)!)!
    await expectOk(admin.put(`/coupons/${coupon._id}`, { maxRedemptions: 0 }))
    await at.applyTrigger(subscriptionId, 'activated', { occurredAt: NOON, externalSubscriptionId: external })
    expect(await expectOk(client.get('/subscriptions/me'))).toMatchObject({ couponId: null, finalPrice: 20 })
    await at.advanceClock(0)
    expect(stripe.subscriptions.get(external).items.data[0].price.unit_amount).toBe(2000)
  })
})

describe('the amount of a paid dynamic plan', () => {
  test('a new dynamic amount is set at the provider for the next cycle, less the attached coupon', async () => {
    const one = await createPaidSubscription(at.dynamic, 50)
    const path = `/subscriptions/${one.id}/dynamic-amount`
    expect(one.price()).toBe(5000)
    expect(await expectOk(admin.put(path, { amount: 75.5 }))).toMatchObject({
      status: 'active',
      dynamicAmount: 75.5,
      finalPrice: 75.5,
    })
    expect(one.price()).toBe(7550)
    const request = stripe.asked('POST', /subscriptions\/sub_/).at(-1)!
    expect(request.body.proration_behavior).toBe('none')
    const { code } = await at.createCoupon({ discountValue: 10 })
    await expectOk(one.attach(code))
    await expectOk(admin.put(path, { amount: 100 }))
    expect([one.price(), (await one.row()).finalPrice]).toEqual([9000, 90])
  })

  test('a dynamic amount that changes after the checkout is set at the provider once the checkout is paid', async () => {
    const client = await at.createCustomer()
    const { _id: id } = await expectOk(client.post('/subscriptions', { planId: at.dynamic, billingCycle: 'monthly' }))
    const path = `/subscriptions/${id}/dynamic-amount`
    await expectOk(admin.put(path, { amount: 50 }))
    await expectOk(client.post('/checkout', { subscriptionId: id }))
    const external = stripe.pay([...stripe.sessions.keys()].at(-1)!)!
    await expectOk(admin.put(path, { amount: 60 }))
    await at.applyTrigger(id, 'activated', { occurredAt: NOON, externalSubscriptionId: external })
    await at.advanceClock(0)
    expect(stripe.subscriptions.get(external).items.data[0].price.unit_amount).toBe(6000)
  })

  test('a dynamic amount stays unchanged when the provider fails with 502 PROVIDER_ERROR', async () => {
    const one = await createPaidSubscription(at.dynamic, 50)
    stripe.own.nextFailures = Array(6).fill({ status: 500 })
    expect(statusAndCode(await admin.put(`/subscriptions/${one.id}/dynamic-amount`, { amount: 60 }))).toEqual(
      PROVIDER_ERROR,
    )
    expect([(await one.row()).dynamicAmount, one.price()]).toEqual([50, 5000])
  })
})
