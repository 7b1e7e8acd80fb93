import { afterAll, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { moveClock, now } from '../../src/core/clock'
import { runDueJobs } from '../../src/jobs/runner'
import { subscriptions } from '../../src/payments/tables'
import { startStripe } from '../fakes/vendors/stripe'
import { allowPrivateNetwork, denyPrivateNetwork, times } from '../plugins/fixtures'
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

const customers = await Promise.all(times(100).map(() => at.createCustomer()))
const redemptions = async (id: string) => (await expectOk(admin.get(`/coupons/${id}`))).currentRedemptions as number

test('one of 100 concurrent checkouts gets the last redemption of a coupon, and the others get 400 COUPON_MAX_REDEMPTIONS', async () => {
  const { _id, code } = await at.createCoupon({ discountValue: 100, maxRedemptions: 1 })
  const answers = await Promise.all(
    customers.map((client) => client.post('/checkout', { ...monthly, couponCode: code })),
  )
  const refusals = answers.filter(({ status }) => status !== 200)
  expect(refusals.map(statusAndCode)).toEqual(Array(99).fill([400, 'COUPON_MAX_REDEMPTIONS']))
  expect(await redemptions(_id)).toBe(1)
  expect((await expectOk(admin.get('/subscriptions?limit=1000'))).length).toBe(1)
  const [winner] = answers.filter(({ status }) => status === 200)
  await expectOk(admin.put(`/subscriptions/${winner!.body.subscriptionId}/cancel`))
})

test('one of 100 concurrent payments gets the last redemption of a coupon, and the others pay the price of the plan', async () => {
  const { _id, code } = await at.createCoupon({ maxRedemptions: 1 })
  const ids = await Promise.all(
    customers.map(
      async (client) => (await expectOk(client.post('/subscriptions', { ...monthly, couponCode: code })))._id as string,
    ),
  )
  const moves = await Promise.all(ids.map((id, n) => at.applyTrigger(id, 'activated', { occurredAt: n })))
  expect(
    moves.every(({ outcome, subscription }) => outcome === 'applied' && subscription.status === 'active'),
  ).toBeTrue()
  const rows = await Promise.all(ids.map((id) => admin.get(`/subscriptions/${id}`).then(({ body }) => body)))
  const prices = rows.map(({ couponId, finalPrice }) => `${couponId === _id} ${finalPrice}`).sort()
  expect(prices).toEqual([...Array(99).fill('false 20'), 'true 10'])
  expect(await redemptions(_id)).toBe(1)
  expect((await at.events()).filter((name) => name === 'coupon-lost').length).toBe(99)
  // Repeated and later events redeem nothing again.
  await Promise.all(ids.map((id, n) => at.applyTrigger(id, 'activated', { occurredAt: 1_000 + n })))
  expect(await redemptions(_id)).toBe(1)
})

test('one of 100 concurrent attachments of a coupon gets its last redemption', async () => {
  const { _id, code } = await at.createCoupon({ maxRedemptions: 1 })
  const own = await expectOk(admin.get('/subscriptions?status=active&limit=1000'))
  const attach = ({ _id }: { _id: string }) => admin.put(`/subscriptions/${_id}/coupon`, { couponCode: code })
  const answers = await Promise.all(own.slice(0, 100).map(attach))
  expect(answers.length).toBe(100)
  expect(answers.filter(({ status }) => status === 200).length).toBe(1)
  expect(await redemptions(_id)).toBe(1)
})

test('one of two concurrent checkouts of an entity succeeds, and the other gets 409 ACTIVE_SUBSCRIPTION_EXISTS', async () => {
  for (const body of [monthly, { planId: at.free, billingCycle: 'monthly' }]) {
    const client = await at.createCustomer()
    stripe.own.nextFailures = [{ slow: 100 }]
    const answers = await Promise.all([client.post('/checkout', body), client.post('/checkout', body)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    const [one, other] = answers.sort((a, b) => a.status - b.status)
    expect([other!.body.code, other!.body.details]).toEqual([
      'ACTIVE_SUBSCRIPTION_EXISTS',
      { existingSubscriptionId: one!.body.subscriptionId },
    ])
    expect((await expectOk(client.get('/subscriptions'))).length).toBe(1)
    stripe.own.nextFailures = []
  }
})

test('one of five concurrent checkouts of a pending subscription succeeds, and the others get 409', async () => {
  const client = await at.createCustomer()
  const { _id: subscriptionId } = await expectOk(client.post('/subscriptions', monthly))
  stripe.own.nextFailures = [{ slow: 100 }]
  const answers = await Promise.all(times(5).map(() => client.post('/checkout', { subscriptionId })))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409])
})

test('a checkout that a crash left unfinished blocks others for a minute only', async () => {
  const client = await at.createCustomer()
  const { _id: subscriptionId } = await expectOk(client.post('/subscriptions', monthly))
  const claim = { checkoutUntil: now() + 60_000 }
  await at.tenant.write((tx) => tx.update(subscriptions).set(claim).where(eq(subscriptions._id, subscriptionId)))
  expect(statusAndCode(await client.post('/checkout', monthly))).toEqual([409, 'ACTIVE_SUBSCRIPTION_EXISTS'])
  await at.advanceClock(61_000)
  await expectOk(client.post('/checkout', monthly))
  moveClock()
})

test('a payment that arrives before the checkout has been answered activates the subscription', async () => {
  const client = await at.createCustomer()
  const { _id: subscriptionId } = await expectOk(client.post('/subscriptions', monthly))
  let paid = Promise.resolve<unknown>(undefined)
  stripe.own.failWhen = ({ path }) => {
    if (!path.endsWith('/sessions')) return
    paid = at.applyTrigger(subscriptionId, 'activated', {
      occurredAt: 1,
      externalSubscriptionId: `sub_${subscriptionId}`,
    })
    return { slow: 50 }
  }
  await expectOk(client.post('/checkout', { subscriptionId }))
  await paid
  stripe.own.failWhen = () => undefined
  expect(await expectOk(client.get('/subscriptions/me'))).toMatchObject({
    ...{ status: 'active', externalSubscriptionId: `sub_${subscriptionId}`, providerSourceId: at.source },
  })
})

test('a cancellation during a checkout expires its new session, and the checkout gets 400 SUBSCRIPTION_NOT_PENDING', async () => {
  const client = await at.createCustomer()
  const { _id: subscriptionId } = await expectOk(client.post('/subscriptions', monthly))
  let arrived = () => {}
  const requested = new Promise<void>((resolve) => {
    arrived = resolve
  })
  stripe.own.failWhen = ({ path }) => {
    if (path.endsWith('/sessions')) arrived()
    return path.endsWith('/sessions') ? { slow: 200 } : undefined
  }
  const begun = client.post('/checkout', { subscriptionId })
  await requested
  await expectOk(client.put(`/subscriptions/${subscriptionId}/cancel`))
  expect(statusAndCode(await begun)).toEqual([400, 'SUBSCRIPTION_NOT_PENDING'])
  stripe.own.failWhen = () => undefined
  expect([...stripe.sessions.values()].at(-1).status).toBe('expired')
})

test('a payment of an earlier checkout during a cancellation is canceled at the provider', async () => {
  const client = await at.createCustomer()
  const { _id: subscriptionId } = await expectOk(client.post('/subscriptions', monthly))
  await expectOk(client.post('/checkout', { subscriptionId }))
  const external = stripe.pay([...stripe.sessions.keys()].at(-1)!)
  await at.tenant.write((tx) =>
    tx.update(subscriptions).set({ externalCheckoutId: 'cs_of_another' }).where(eq(subscriptions._id, subscriptionId)),
  )
  const requested = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<void>()
  stripe.own.failWhen = ({ path }) => {
    if (!path.endsWith('/expire')) return
    requested.resolve()
    return { late: answered.promise }
  }
  const canceling = client.put(`/subscriptions/${subscriptionId}/cancel`)
  await requested.promise
  await at.applyTrigger(subscriptionId, 'activated', {
    ...{ occurredAt: Date.now(), externalSubscriptionId: external, providerKind: 'stripe' },
  })
  answered.resolve()
  expect(await expectOk(canceling)).toMatchObject({ status: 'canceled', externalSubscriptionId: external })
  stripe.own.failWhen = () => undefined
  await runDueJobs(at.tenant)
  expect(stripe.subscriptions.get(external).status).toBe('canceled')
})

test('one of ten concurrent payments of an entity activates its subscription, and the others stay pending and are reported', async () => {
  const client = await at.createCustomer()
  const ids: string[] = []
  for (const _ of times(10)) ids.push((await expectOk(client.post('/subscriptions', monthly)))._id)
  const moves = await Promise.all(
    ids.map((id, n) =>
      at.applyTrigger(id, 'activated', { occurredAt: n, externalSubscriptionId: `sub_${id}`, providerKind: 'stripe' }),
    ),
  )
  expect(moves.filter(({ outcome }) => outcome === 'applied').length).toBe(1)
  const rows = await expectOk(client.get('/subscriptions'))
  const statuses = rows.map(({ status }: { status: string }) => status).sort()
  expect(statuses).toEqual(['active', ...Array(9).fill('pending')])
  // The id at the provider is needed to refund the others.
  expect(rows.every((row: { externalSubscriptionId: string }) => row.externalSubscriptionId)).toBeTrue()
  const failed = await expectOk(admin.get('/events?eventName=webhook-failed'))
  expect(failed.length).toBe(9)
  expect(failed[0].metadata).toMatchObject({ trigger: 'activated', existingSubscriptionId: expect.any(String) })
})
