import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import { moveClock, now } from '../../../src/core/clock'
import { startStripe } from '../../fakes/vendors/stripe'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { statusAndCode } from '../../test-tenant'
import { createPaymentsFixture, expectOk, NO_PLAN, NO_SUBSCRIPTION } from '../fixtures'

allowPrivateNetwork()
const stripe = await startStripe()
const at = await createPaymentsFixture(stripe.connection())
const { admin } = at
afterEach(() => moveClock())
afterAll(async () => {
  denyPrivateNetwork()
  await stripe.stop()
})

const START = '2026-01-31T12:00:00.000Z'
type Payment = { date: string; amount: number; reason: string }
const preview = (plan: string, body: object = {}) =>
  expectOk(admin.post(`/plans/${plan}/price-preview`, { billingCycle: 'monthly', start: START, payments: 4, ...body }))
const daysAndAmounts = ({ payments }: { payments: Payment[] }) =>
  payments.map(({ date, amount, reason }) => [date.slice(0, 10), amount, reason])

describe('the preview of what a customer pays for a plan', () => {
  test('it lists the payments of a cycle from the last day of January, with their sum', async () => {
    const monthly = await preview(at.pro)
    expect(monthly).toMatchObject({
      currency: 'USD',
      basePrice: 20,
      total: 80,
      isFree: false,
      couponBenefitEndsAt: null,
    })
    expect(daysAndAmounts(monthly)).toEqual([
      ['2026-01-31', 20, 'price'],
      ['2026-02-28', 20, 'price'],
      ['2026-03-31', 20, 'price'],
      ['2026-04-30', 20, 'price'],
    ])
    expect(monthly.payments[0].periodEnd).toBe('2026-02-28T12:00:00.000Z')
    const yearly = await preview(at.pro, { billingCycle: 'yearly', payments: 2 })
    expect(daysAndAmounts(yearly)).toEqual([
      ['2026-01-31', 200, 'price'],
      ['2027-01-31', 200, 'price'],
    ])
  })

  test('a coupon lowers the payments until its benefit has ended', async () => {
    const { code } = await at.createCoupon({ benefitDurationUnit: 'days', benefitDurationValue: 40 })
    const body = await preview(at.pro, { couponCode: code.toUpperCase() })
    expect([body.couponBenefitEndsAt, body.total]).toEqual(['2026-03-12T12:00:00.000Z', 60])
    expect(body.payments.map(({ amount, reason }: Payment) => [amount, reason])).toEqual([
      [10, 'coupon'],
      [10, 'coupon'],
      [20, 'price'],
      [20, 'price'],
    ])
  })

  test('a coupon that makes everything free leads to no payment at all, and one that ends to the price afterwards', async () => {
    const { code } = await at.createCoupon({
      ...{ discountValue: 100, benefitDurationUnit: 'months', benefitDurationValue: 1 },
    })
    const reasonsOf = (body: { isFree: boolean; total: number; payments: Payment[] }) => [
      ...[body.isFree, body.total, ...body.payments.map(({ reason }) => reason)],
    ]
    const limited = await preview(at.pro, { couponCode: code })
    expect(reasonsOf(limited)).toEqual([false, 40, 'coupon', 'coupon', 'price', 'price'])
    const endless = await at.createCoupon({ discountValue: 100 })
    const free = await preview(at.pro, { couponCode: endless.code })
    expect(reasonsOf(free)).toEqual([true, 0, 'free', 'free', 'free', 'free'])
    expect((await preview(at.free)).isFree).toBe(true)
  })

  test('a coupon is refused when it cannot be redeemed at the start', async () => {
    const { code } = await at.createCoupon({ validFrom: '2026-06-01T00:00:00Z' })
    const send = (start: string) =>
      admin.post(`/plans/${at.pro}/price-preview`, { billingCycle: 'monthly', couponCode: code, start })
    expect(await statusAndCode(await send(START))).toEqual([400, 'COUPON_NOT_YET_VALID'])
    expect((await send('2026-06-02')).status).toBe(200)
  })

  test('a dynamic plan needs an amount, and what is unknown or invalid is refused', async () => {
    const send = async (plan: string, body: object) =>
      statusAndCode(await admin.post(`/plans/${plan}/price-preview`, { billingCycle: 'monthly', ...body }))
    expect((await preview(at.dynamic, { amount: 12.5 })).payments[0].amount).toBe(12.5)
    expect(await send(at.dynamic, {})).toEqual([400, 'INVALID_AMOUNT'])
    expect(await send(at.pro, { start: 'soon' })).toEqual([400, 'INVALID_INPUT'])
    expect(await send(at.pro, { payments: 61 })).toEqual([400, 'INVALID_INPUT'])
    expect(await send(at.pro, { couponCode: 'none' })).toEqual([400, 'COUPON_NOT_FOUND'])
    expect(await send('none', {})).toEqual(NO_PLAN)
    expect((await at.as('user').post(`/plans/${at.pro}/price-preview`, { billingCycle: 'monthly' })).status).toBe(403)
  })

  test('it agrees with what the provider charges from the checkout until after the benefit', async () => {
    moveClock(Date.parse(START))
    const { code } = await at.createCoupon({ benefitDurationUnit: 'days', benefitDurationValue: 40 })
    const previewed = await preview(at.pro, { couponCode: code })
    const customer = await at.createCustomer()
    const checkout = { planId: at.pro, billingCycle: 'monthly', couponCode: code }
    const { subscriptionId } = await expectOk(customer.post('/checkout', checkout))
    const external = stripe.pay([...stripe.sessions.keys()].at(-1)!)!
    const period = { periodStart: now(), periodEnd: Date.parse(previewed.payments[0].periodEnd) }
    await at.applyTrigger(subscriptionId, 'activated', {
      occurredAt: now(),
      externalSubscriptionId: external,
      ...period,
    })
    const charged: number[] = []
    for (const { date } of previewed.payments as Payment[]) {
      await at.advanceClock(Date.parse(date) - now() - 1_000)
      charged.push(stripe.subscriptions.get(external).items.data[0].price.unit_amount / 100)
    }
    expect(charged).toEqual(previewed.payments.map(({ amount }: Payment) => amount))
  })
})

describe('the preview of the next payments of a subscription', () => {
  const next = async (id: string) => expectOk(admin.get(`/subscriptions/${id}/price-preview`))

  test('it begins with the current period end, and is empty when the subscription ends', async () => {
    moveClock(Date.parse(START))
    const { id: owner, get } = await at.createCustomer()
    const { code } = await at.createCoupon({ benefitDurationUnit: 'months', benefitDurationValue: 2 })
    const billable = { billableEntityType: 'user', billableEntityId: owner }
    const id = await at.createPending('admin', { ...billable, couponCode: code })
    expect((await next(id)).payments[0]).toMatchObject({ amount: 10, reason: 'coupon' })
    const [periodStart, periodEnd] = [Date.parse(START), Date.parse('2026-02-28T12:00:00.000Z')]
    await at.applyTrigger(id, 'activated', {
      occurredAt: now(),
      externalSubscriptionId: 'sub_next',
      periodStart,
      periodEnd,
    })
    const body = await next(id)
    expect(body.couponBenefitEndsAt).toBe('2026-03-31T12:00:00.000Z')
    expect(body.payments).toHaveLength(12)
    expect(daysAndAmounts(body).slice(0, 3)).toEqual([
      ['2026-02-28', 10, 'coupon'],
      ['2026-03-31', 10, 'coupon'],
      ['2026-04-30', 20, 'price'],
    ])
    expect((await get(`/subscriptions/${id}/price-preview`)).body).toEqual(body)
    expect((await at.as('user').get(`/subscriptions/${id}/price-preview`)).status).toBe(403)
    await at.applyTrigger(id, 'updated', { occurredAt: now() + 1, cancelAtPeriodEnd: true })
    expect((await next(id)).payments).toEqual([])
    expect(await statusAndCode(await admin.get('/subscriptions/none/price-preview'))).toEqual(NO_SUBSCRIPTION)
  })

  test('a free subscription has payments of nothing', async () => {
    const { post } = await at.createCustomer()
    const { subscriptionId } = await expectOk(post('/checkout', { planId: at.free, billingCycle: 'monthly' }))
    expect(await next(subscriptionId)).toMatchObject({ isFree: true, total: 0 })
  })
})
