import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { moveClock, now } from '../../../src/core/clock'
import { logOutput } from '../../../src/core/log'
import { driftCounts } from '../../../src/payments/jobs/drift'
import { startStripe } from '../../fakes/vendors/stripe'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { createPaymentsFixture, expectOk } from '../fixtures'
import { deliver } from '../webhooks/webhook-fixtures'

setDefaultTimeout(30_000)
allowPrivateNetwork()
const stripe = await startStripe()
const at = await createPaymentsFixture(stripe.connection())
const { admin } = at
const HOUR = 3_600_000
const DAY = 24 * HOUR
const logSpy = spyOn(logOutput, 'write')
beforeAll(() => void logSpy.mockImplementation(() => {}))
afterEach(() => {
  moveClock()
  stripe.own.failWhen = () => undefined
})
afterAll(async () => {
  logSpy.mockRestore()
  denyPrivateNetwork()
  await stripe.stop()
})

const deliverAllEvents = async () => {
  for (const event of stripe.events.splice(0)) await deliver(at, 'stripe', stripe.signEvent(event))
}

/** Starts a checkout of a new customer, and returns its subscription and Stripe session. */
async function startCheckout(body: object = {}) {
  const client = await at.createCustomer()
  const { subscriptionId: id } = await expectOk(
    client.post('/checkout', { planId: at.pro, billingCycle: 'monthly', ...body }),
  )
  return { id: id as string, client, session: [...stripe.sessions.keys()].at(-1)! }
}
/** Starts a checkout, pays it and delivers the events of Stripe. */
async function payCheckout(body: object = {}) {
  const one = await startCheckout(body)
  const external = stripe.pay(one.session)
  await deliverAllEvents()
  expect(await at.status(one.id)).toBe('active')
  return { ...one, external, atStripe: () => stripe.subscriptions.get(external) }
}
const listEventMetadata = async (eventName: string, id: string) =>
  (
    (await expectOk(admin.get(`/events?eventName=${eventName}&limit=1000`))) as {
      metadata: { subscriptionId: string }
    }[]
  )
    .map(({ metadata }) => metadata)
    .filter(({ subscriptionId }) => subscriptionId === id)
const invoicesOf = async (id: string) =>
  ((await expectOk(admin.get('/invoices?limit=1000'))) as { subscriptionId: string; status: string }[]).filter(
    ({ subscriptionId }) => subscriptionId === id,
  )

describe('time-based jobs', () => {
  test('an unpaid checkout expires after a day, here and at the provider', async () => {
    const { id, session, client } = await startCheckout()
    await at.advanceClock(DAY - 2 * HOUR)
    expect(await at.status(id)).toBe('pending')
    await at.advanceClock(2 * HOUR)
    expect([await at.status(id), stripe.sessions.get(session).status]).toEqual(['expired', 'expired'])
    expect(await listEventMetadata('subscription-expired', id)).toHaveLength(1)
    await expectOk(client.post('/checkout', { planId: at.pro, billingCycle: 'monthly' }))
  })

  test('a dynamic subscription expires a day after its amount was set, however long that took', async () => {
    const id = await at.createPending('user', { planId: at.dynamic })
    await at.advanceClock(3 * DAY)
    expect(await at.status(id)).toBe('pending')
    await expectOk(admin.put(`/subscriptions/${id}/dynamic-amount`, { amount: 7 }))
    await at.advanceClock(DAY - HOUR)
    expect(await at.status(id)).toBe('pending')
    await at.advanceClock(HOUR + 1_000)
    expect(await at.status(id)).toBe('expired')
  })

  test('a past-due subscription is canceled after the grace period, and its cancellation at the provider is retried', async () => {
    const { id, external, atStripe } = await payCheckout()
    stripe.fail(external)
    await deliverAllEvents()
    expect(await at.status(id)).toBe('past_due')
    await at.advanceClock(3 * DAY - HOUR)
    expect(await at.status(id)).toBe('past_due')
    stripe.own.failWhen = () => ({ status: 500 })
    await at.advanceClock(HOUR + 1_000)
    expect([await at.status(id), atStripe().status]).toEqual(['canceled', 'past_due'])
    stripe.own.failWhen = () => undefined
    await at.advanceClock(HOUR)
    expect(atStripe().status).toBe('canceled')
  })

  test('a past-due subscription is canceled by the currently configured grace period, unless it is paid before', async () => {
    const [one, other] = [await payCheckout(), await payCheckout()]
    const open = [one, other].map(({ external }) => stripe.fail(external))
    await deliverAllEvents()
    await expectOk(admin.put('/payments/configuration', { metadata: { gracePeriodDays: 1 } }))
    await at.advanceClock(HOUR)
    stripe.recover(open[1]!)
    await deliverAllEvents()
    await at.advanceClock(DAY)
    expect([await at.status(one.id), await at.status(other.id)]).toEqual(['canceled', 'active'])
    await expectOk(admin.put('/payments/configuration', { metadata: { gracePeriodDays: 3 } }))
  })

  test('cancelAtPeriodEnd cancels a subscription at its period end, unless the provider has reverted it without an event', async () => {
    const [one, other] = [await payCheckout(), await payCheckout()]
    for (const { external } of [one, other]) stripe.change(external, { cancel_at_period_end: true })
    await deliverAllEvents()
    stripe.change(other.external, { cancel_at_period_end: false })
    stripe.events.splice(0)
    const { currentPeriodEnd } = await expectOk(admin.get(`/subscriptions/${one.id}`))
    await at.advanceClock(Date.parse(currentPeriodEnd) - now() - HOUR)
    expect(await at.status(one.id)).toBe('active')
    await at.advanceClock(HOUR + 1_000)
    expect([await at.status(one.id), one.atStripe().status]).toEqual(['canceled', 'canceled'])
    expect([await at.status(other.id), other.atStripe().status]).toEqual(['active', 'active'])
  })

  test('the price of the plan returns when the benefit of a coupon ends, and is retried at the provider', async () => {
    const coupon = await at.createCoupon({ benefitDurationUnit: 'days', benefitDurationValue: 10 })
    const { id, atStripe } = await payCheckout({ couponCode: coupon.code })
    const price = () => atStripe().items.data[0].price.unit_amount
    await at.advanceClock(9 * DAY)
    expect([price(), (await expectOk(admin.get(`/subscriptions/${id}`))).finalPrice]).toEqual([1000, 10])
    stripe.own.failWhen = ({ method }) => (method === 'POST' ? 'down' : undefined)
    await at.advanceClock(DAY + HOUR)
    expect([price(), (await expectOk(admin.get(`/subscriptions/${id}`))).finalPrice]).toEqual([1000, 20])
    stripe.own.failWhen = () => undefined
    await at.advanceClock(HOUR)
    expect([price(), await at.status(id)]).toEqual([2000, 'active'])
  })
})

describe('lost webhooks', () => {
  test('a payment whose webhooks were lost is found within an hour, with its invoice and one provider-drift event', async () => {
    const { id, session } = await startCheckout()
    stripe.pay(session)
    stripe.events.splice(0)
    const before = driftCounts().get('stripe') ?? 0
    await at.advanceClock(HOUR + 1_000)
    expect(await at.status(id)).toBe('active')
    expect((await invoicesOf(id)).map(({ status }) => status)).toEqual(['paid'])
    expect(driftCounts().get('stripe')! - before).toBe(1)
    expect(await listEventMetadata('provider-drift', id)).toMatchObject([
      { mended: true, providerKind: 'stripe', status: { ours: 'pending', theirs: 'active' } },
    ])
    await at.advanceClock(HOUR)
    expect(await listEventMetadata('provider-drift', id)).toHaveLength(1)
  })

  test('late webhooks do not undo what the hourly comparison has applied', async () => {
    const { id, external } = await payCheckout()
    moveClock(now() + HOUR / 2)
    const open = stripe.fail(external)
    const late = stripe.events.splice(0)
    moveClock(now() + 5_000)
    stripe.recover(open)
    stripe.events.splice(0)
    await at.advanceClock(HOUR)
    expect((await invoicesOf(id)).map(({ status }) => status)).toEqual(['paid', 'paid'])
    for (const event of late) await deliver(at, 'stripe', stripe.signEvent(event))
    await at.advanceClock(HOUR)
    expect(await at.status(id)).toBe('active')
  })

  test('a subscription that ended at the provider is canceled here, and one that is missing there is reported once', async () => {
    const [one, other] = [await payCheckout(), await payCheckout()]
    stripe.end(one.external)
    stripe.events.splice(0)
    stripe.subscriptions.delete(other.external)
    for (let hours = 0; hours < 3; hours++) await at.advanceClock(HOUR + 1_000)
    expect(await at.status(one.id)).toBe('canceled')
    expect(await at.status(other.id)).toBe('active')
    expect(await listEventMetadata('provider-drift', other.id)).toMatchObject([
      { mended: false, missing: other.external },
    ])
  })

  test('an invoice lost before a long outage of the provider is fetched afterwards, even for a canceled subscription', async () => {
    const { id, external, client } = await payCheckout()
    stripe.renew(external)
    stripe.events.splice(0)
    await expectOk(client.put(`/subscriptions/${id}/cancel`))
    stripe.own.failWhen = () => 'down'
    await at.advanceClock(4 * DAY)
    expect(await invoicesOf(id)).toHaveLength(1)
    stripe.own.failWhen = () => undefined
    await at.advanceClock(HOUR)
    expect((await invoicesOf(id)).map(({ status }) => status)).toEqual(['paid', 'paid'])
  })

  test('a replaced checkout is expired at the provider even after an outage of a month', async () => {
    const { id, session, client } = await startCheckout()
    await expectOk(client.post('/checkout', { subscriptionId: id, successUrl: 'https://shop.test/other' }))
    stripe.own.failWhen = () => 'down'
    await at.advanceClock(31 * DAY)
    stripe.own.failWhen = () => undefined
    await at.advanceClock(HOUR)
    expect(stripe.sessions.get(session).status).toBe('expired')
  })

  test('a second payment of one subscription is canceled at the provider, and the first one is when the user cancels', async () => {
    const { id, session, client } = await startCheckout()
    const answers = [
      await expectOk(client.post('/checkout', { subscriptionId: id, successUrl: 'https://shop.test/other' })),
    ]
    expect(answers[0].subscriptionId).toBe(id)
    const second = [...stripe.sessions.keys()].at(-1)!
    const [first, twice] = [stripe.pay(session), stripe.pay(second)]
    await deliverAllEvents()
    await at.advanceClock(1_000)
    const statuses = [first, twice].map((one) => stripe.subscriptions.get(one).status).sort()
    expect([await at.status(id), ...statuses]).toEqual(['active', 'active', 'canceled'])
    await expectOk(client.put(`/subscriptions/${id}/cancel`))
    expect(stripe.subscriptions.get(first).status).toBe('canceled')
  })
})

test('a tenant without subscriptions has no payment jobs, and a subscription has at most one time-based job', async () => {
  const { tenant } = await createPaymentsFixture()
  expect(await tenant.db.query(`select kind from jobs where kind like 'payments%'`)).toEqual([])
  const [[most] = []] = await at.tenant.db.query(
    `select count(*) from jobs where kind = 'payments-time' group by payload order by 1 desc limit 1`,
  )
  expect(Number(most)).toBe(1)
})
