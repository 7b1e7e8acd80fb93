import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { now } from '../../src/core/clock'
import { paypal as paypalProvider } from '../../src/payments/providers/paypal/provider'
import type { ProviderKind } from '../../src/payments/providers/provider'
import { startPaddle } from '../fakes/vendors/paddle'
import { startPaypal } from '../fakes/vendors/paypal'
import { startStripe } from '../fakes/vendors/stripe'
import { allowPrivateNetwork, denyPrivateNetwork } from '../plugins/fixtures'
import { statusAndCode } from '../test-tenant'
import { createPaymentsFixture, expectOk } from './fixtures'
import { createOrder, createResolvedConnection } from './providers/provider-fixtures'
import { deliver } from './webhooks/webhook-fixtures'

allowPrivateNetwork()
const [stripe, paddle, paypal] = [await startStripe(), await startPaddle(), await startPaypal()]
const at = await createPaymentsFixture(stripe.connection())
const { admin } = at
const monthly = { planId: at.pro, billingCycle: 'monthly' }
const newestSession = () => [...stripe.sessions.keys()].at(-1)!

beforeAll(allowPrivateNetwork)
afterEach(() => {
  stripe.own.failWhen = () => undefined
  stripe.own.nextFailures = []
})
afterAll(async () => {
  denyPrivateNetwork()
  await Promise.all([stripe.stop(), paddle.stop(), paypal.stop()])
})

/** Delivers all events that Stripe sends during the action, and runs the due jobs. */
async function deliverEventsOf(action: () => unknown) {
  const before = stripe.events.length
  await action()
  for (const event of stripe.events.slice(before)) await expectOk(deliver(at, 'stripe', stripe.signEvent(event)))
  await at.advanceClock(0)
}

/** Starts a checkout at half the price with the only redemption of a coupon; `again` starts one with a lesser coupon. */
async function startTwoCheckouts() {
  const client = await at.createCustomer()
  const half = await at.createCoupon({ maxRedemptions: 1 })
  const little = await at.createCoupon({ discountValue: 1 })
  const { subscriptionId } = await expectOk(client.post('/checkout', { ...monthly, couponCode: half.code }))
  const first = newestSession()
  return {
    ...{ client, half, subscriptionId, first },
    again: () => expectOk(client.post('/checkout', { subscriptionId, couponCode: little.code })),
  }
}

test('a customer who pays an earlier, cheaper checkout is repriced at the provider to the current price', async () => {
  const { client, half, subscriptionId, first, again } = await startTwoCheckouts()
  // The session is paid before it can be expired, and its event arrives later.
  await deliverEventsOf(async () => {
    stripe.pay(first)
    await again()
  })
  const row = await expectOk(client.get('/subscriptions/me'))
  expect([row._id, row.status, row.finalPrice]).toEqual([subscriptionId, 'active', 19.8])
  expect(stripe.subscriptions.get(row.externalSubscriptionId).items.data[0].price.unit_amount).toBe(1980)
  expect((await expectOk(admin.get(`/coupons/${half._id}`))).currentRedemptions).toBe(0)
})

test('a payment of an earlier checkout that arrives after a free activation is linked, and repriced to the current price', async () => {
  const client = await at.createCustomer()
  const [half, all] = [await at.createCoupon({}), await at.createCoupon({ discountValue: 100 })]
  const { subscriptionId } = await expectOk(client.post('/checkout', { ...monthly, couponCode: half.code }))
  const session = newestSession()
  const before = stripe.events.length
  const external = stripe.pay(session)
  await expectOk(client.post('/checkout', { subscriptionId, couponCode: all.code }))
  await expectOk(admin.put(`/subscriptions/${subscriptionId}/coupon`, { couponCode: null }))
  for (const event of stripe.events.slice(before)) await expectOk(deliver(at, 'stripe', stripe.signEvent(event)))
  await at.advanceClock(0)
  expect(await expectOk(client.get('/subscriptions/me'))).toMatchObject({
    ...{ _id: subscriptionId, status: 'active', externalSubscriptionId: external, finalPrice: 20 },
  })
  const atStripe = stripe.subscriptions.get(external)
  expect([atStripe.status, atStripe.items.data[0].price.unit_amount]).toEqual(['active', 2000])
})

test('a payment at a former provider is linked to the subscription, and a cancellation ends it there', async () => {
  const own = await createPaymentsFixture(stripe.connection())
  const client = await own.createCustomer()
  const begin = (body: object) => expectOk(client.post('/checkout', body))
  const { subscriptionId } = await begin({ planId: own.pro, billingCycle: 'monthly' })
  const session = newestSession()
  const paypalSource = await expectOk(own.admin.post('/integration-sources', paypal.connection()), 201)
  await expectOk(own.admin.put('/payments/configuration', { metadata: { paymentSourceId: paypalSource._id } }))
  paypal.plan('P-PRO', '20.00')
  await expectOk(own.admin.put(`/plans/${own.pro}`, { externalIds: { paypal: { monthlyPlanId: 'P-PRO' } } }))
  const before = stripe.events.length
  const external = stripe.pay(session)
  await begin({ subscriptionId })
  for (const event of stripe.events.slice(before)) await expectOk(deliver(own, 'stripe', stripe.signEvent(event)))
  expect(await expectOk(client.get('/subscriptions/me'))).toMatchObject({
    ...{ _id: subscriptionId, providerKind: 'stripe', providerSourceId: own.source, externalSubscriptionId: external },
  })
  await expectOk(client.put(`/subscriptions/${subscriptionId}/cancel`))
  expect(stripe.subscriptions.get(external).status).toBe('canceled')
})

test('an order placed directly at PayPal with a cheaper plan is repriced to the price of the subscription', async () => {
  const own = await createPaymentsFixture(paypal.connection())
  for (const [plan, price] of [
    ['P-PRO', '20.00'],
    ['P-CHEAP', '1.00'],
  ] as const)
    paypal.plan(plan, price)
  await expectOk(own.admin.put(`/plans/${own.pro}`, { externalIds: { paypal: { monthlyPlanId: 'P-PRO' } } }))
  const client = await own.createCustomer()
  const { subscriptionId } = await expectOk(client.post('/checkout', { planId: own.pro, billingCycle: 'monthly' }))
  const cheapOrder = createOrder({ subscriptionId, externalIds: { monthlyPlanId: 'P-CHEAP' } })
  const { externalSubscriptionId: id } = await paypalProvider.createCheckout(
    createResolvedConnection(paypal.connection()),
    cheapOrder,
  )
  const before = paypal.events.length
  paypal.approve(id!)
  for (const event of paypal.events.slice(before)) await expectOk(deliver(own, 'paypal', paypal.signEvent(event)))
  await own.advanceClock(0)
  expect(await expectOk(client.get('/subscriptions/me'))).toMatchObject({ externalSubscriptionId: id, finalPrice: 20 })
  expect(paypal.subscriptions.get(id!).price.value).toBe('20.00')
})

test('a trial starts at the dynamic amount that is current when it starts, not at that of its checkout', async () => {
  const client = await at.createCustomer()
  const { _id: subscriptionId } = await expectOk(client.post('/subscriptions', { ...monthly, planId: at.dynamic }))
  const price = (amount: number) => expectOk(admin.put(`/subscriptions/${subscriptionId}/dynamic-amount`, { amount }))
  await price(5)
  await expectOk(client.post('/checkout', { subscriptionId }))
  await price(50)
  let external = ''
  await deliverEventsOf(() => {
    external = stripe.pay(newestSession(), { trial: 7 })
  })
  expect(await at.status(subscriptionId)).toBe('trialing')
  expect(stripe.subscriptions.get(external).items.data[0].price.unit_amount).toBe(5000)
})

test('a fixed coupon in another currency than the subscription gets 400 COUPON_NOT_APPLICABLE, even if the plan has switched to it', async () => {
  const plan = await at.createPlan({ name: 'Moved', monthlyPrice: 100, yearlyPrice: 100 })
  const id = await at.createPending('user', { planId: plan._id })
  await expectOk(admin.put(`/plans/${plan._id}`, { currency: 'KWD' }))
  const [dinars, dollars] = await Promise.all(
    ['KWD', 'USD'].map((currency) => at.createCoupon({ discountType: 'fixed', discountValue: 10, currency })),
  )
  const attach = ({ code }: { code: string }) => admin.put(`/subscriptions/${id}/coupon`, { couponCode: code })
  expect(statusAndCode(await attach(dinars))).toEqual([400, 'COUPON_NOT_APPLICABLE'])
  expect((await expectOk(attach(dollars))).finalPrice).toBe(90)
  const order = { subscriptionId: id, couponCode: dinars.code }
  expect(statusAndCode(await at.as('user').post('/checkout', order))).toEqual([400, 'COUPON_NOT_APPLICABLE'])
})

test('a checkout with a malformed answer of the provider fails with 502 PROVIDER_ERROR and leaves no subscription', async () => {
  const vendors = { stripe, paypal, paddle } satisfies Record<ProviderKind, unknown>
  const malformed: Record<ProviderKind, unknown[]> = {
    stripe: [{ id: 'cs_1' }, { url: 'https://pay.test/' }, { id: 1, url: 'https://pay.test/' }, [], 'x'],
    paypal: [{ id: 'I-1' }, { links: [{ rel: 'approve', href: 'https://pay.test/' }] }, { id: 'I-1', links: 5 }, []],
    paddle: [{ data: {} }, { data: null }, { data: { id: 7 } }, []],
  }
  for (const [kind, vendor] of Object.entries(vendors)) {
    const own = await createPaymentsFixture(vendor.connection())
    const externalIds = { paypal: { monthlyPlanId: 'P-1' }, paddle: { monthlyPriceId: 'pri_1' } }
    await expectOk(own.admin.put(`/plans/${own.pro}`, { externalIds }))
    for (const body of malformed[kind as ProviderKind]) {
      vendor.own.failWhen = ({ path }) => (/token$/.test(path) ? undefined : { status: 200, body })
      const sent = await own.as('user').post('/checkout', { planId: own.pro, billingCycle: 'monthly' })
      expect(statusAndCode(sent), JSON.stringify(body)).toEqual([502, 'PROVIDER_ERROR'])
      expect(await expectOk(own.as('user').get('/subscriptions'))).toEqual([])
    }
    vendor.own.failWhen = () => undefined
  }
})

test('a checkout with reset cancels a past-due subscription, here and at the provider', async () => {
  const client = await at.createCustomer()
  const { subscriptionId } = await expectOk(client.post('/checkout', monthly))
  let external = ''
  await deliverEventsOf(() => {
    external = stripe.pay(newestSession())
  })
  await at.applyTrigger(subscriptionId, 'payment failed', {})
  await expectOk(client.post('/checkout', { ...monthly, reset: true }))
  expect([await at.status(subscriptionId), stripe.subscriptions.get(external).status]).toEqual(['canceled', 'canceled'])
})

test('a new subscription replaces a past-due one, whose late payment is only stored as an invoice and reported', async () => {
  const client = await at.createCustomer()
  const begin = async () => {
    const { subscriptionId: id } = await expectOk(client.post('/checkout', monthly))
    return { id: id as string, external: stripe.pay(newestSession()) }
  }
  let late = { id: '', external: '' }
  await deliverEventsOf(async () => {
    late = await begin()
  })
  let open = ''
  await deliverEventsOf(() => {
    open = stripe.fail(late.external)
  })
  expect(await at.status(late.id)).toBe('past_due')
  let current = late
  await deliverEventsOf(async () => {
    current = await begin()
  })
  const rows = async () =>
    (await expectOk(client.get('/subscriptions'))).map(({ _id, status }: { _id: string; status: string }) => [
      _id,
      status,
    ])
  const expected = expect.arrayContaining([
    [late.id, 'canceled'],
    [current.id, 'active'],
  ])
  expect(await rows()).toEqual(expected)
  expect(stripe.subscriptions.get(late.external).status).toBe('canceled')
  // The late payment is stored as an invoice and reported.
  const reportedBefore = (await expectOk(admin.get('/events?eventName=webhook-failed'))).length
  await deliverEventsOf(() => stripe.recover(open))
  expect(await rows()).toEqual(expected)
  expect((await expectOk(admin.get('/events?eventName=webhook-failed'))).length).toBeGreaterThan(reportedBefore)
  const paid = (await expectOk(client.get('/invoices'))).map(({ subscriptionId, status }: Record<string, string>) => [
    subscriptionId,
    status,
  ])
  expect(paid.sort()).toEqual(
    [
      [late.id, 'paid'],
      [late.id, 'paid'],
      [current.id, 'paid'],
    ].sort(),
  )
})

test('a free subscription replaces a past-due one, which is canceled at the provider', async () => {
  const client = await at.createCustomer()
  const { subscriptionId: id } = await expectOk(client.post('/checkout', monthly))
  const external = stripe.pay(newestSession())
  stripe.fail(external)
  await at.applyTrigger(id, 'activated', { occurredAt: now(), externalSubscriptionId: external })
  await at.applyTrigger(id, 'payment failed', { occurredAt: now() })
  await expectOk(client.post('/checkout', { planId: at.free, billingCycle: 'monthly' }))
  await at.advanceClock(0)
  expect([await at.status(id), stripe.subscriptions.get(external).status]).toEqual(['canceled', 'canceled'])
})

test('an attached coupon is recognized in any case, spacing and Unicode form of its code, even when it is inactive', async () => {
  const { _id, code } = await at.createCoupon({ code: 'caf\u00e9' })
  const id = await at.createPending('other', { couponCode: code })
  await expectOk(admin.put(`/coupons/${_id}`, { isActive: false }))
  expect((await expectOk(admin.put(`/subscriptions/${id}/coupon`, { couponCode: ' CAFE\u0301 ' }))).couponId).toBe(_id)
})

test('a signed webhook with invalid values gets 400 INVALID_INPUT, and the lists of payments stay readable', async () => {
  const subscriptionId = await at.createPending('other')
  const metadata = { tenant: at.id, subscription: subscriptionId }
  let events = 0
  const sent = (object: object, more: object = {}) => {
    const event = { id: `evt_odd_${events++}`, type: 'invoice.paid', created: Math.floor(now() / 1000), ...more }
    return deliver(at, 'stripe', stripe.signEvent({ ...event, data: { object } }))
  }
  const details = { metadata, subscription: 'sub_odd' }
  const invoice = (more: object) => ({
    ...{ id: `in_odd_${events}`, amount_paid: 2000, currency: 'usd', lines: { data: [] } },
    ...{ parent: { subscription_details: details }, ...more },
  })
  const line = (more: object) => invoice({ lines: { data: [{ amount: 1, ...more }] } })
  const absurd = [1e300, 1e13, -1, 0, null, 'x', {}, true]
  const refused = [
    ...[invoice({ id: {} }), invoice({ id: 'x'.repeat(300) }), invoice({ amount_paid: 1e300 })],
    ...[invoice({ amount_paid: 1.5 }), invoice({ currency: 'no currency' }), invoice({ hosted_invoice_url: {} })],
    ...[line({ quantity: 'many' }), line({ description: [] })],
  ]
  for (const object of refused)
    expect(statusAndCode(await sent(object)), JSON.stringify(object)).toEqual([400, 'INVALID_INPUT'])
  for (const created of absurd) expect((await sent(invoice({}), { created })).status, String(created)).toBe(400)
  expect(await at.status(subscriptionId)).toBe('pending')
  // An impossible period is ignored.
  for (const end of absurd) await expectOk(sent(line({ period: { start: 1, end } })))
  for (const path of ['/payments/events', '/invoices', '/subscriptions', '/events?source=payments'])
    await expectOk(admin.get(path))
  const { currentPeriodEnd } = await expectOk(admin.get(`/subscriptions/${subscriptionId}`))
  expect(Date.parse(currentPeriodEnd)).toBeGreaterThan(now())
})

test('a coupon that an admin attaches during a failing checkout stays attached', async () => {
  const client = await at.createCustomer()
  const [customerCoupon, adminCoupon] = [await at.createCoupon({}), await at.createCoupon({})]
  const { _id: subscriptionId } = await expectOk(client.post('/subscriptions', monthly))
  let attached: Promise<unknown> = Promise.resolve()
  stripe.own.failWhen = () => {
    attached = expectOk(admin.put(`/subscriptions/${subscriptionId}/coupon`, { couponCode: adminCoupon.code }))
    return { status: 500 }
  }
  const begun = client.post('/checkout', { subscriptionId, couponCode: customerCoupon.code })
  expect(statusAndCode(await begun)).toEqual([502, 'PROVIDER_ERROR'])
  await attached
  expect((await expectOk(client.get(`/subscriptions/${subscriptionId}`))).couponId).toBe(adminCoupon._id)
})
