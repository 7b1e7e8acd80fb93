import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { moveClock, now } from '../../../src/core/clock'
import { runDueJobs } from '../../../src/jobs/runner'
import { startPaypal } from '../../fakes/vendors/paypal'
import { startStripe } from '../../fakes/vendors/stripe'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { statusAndCode } from '../../test-tenant'
import { createPaymentsFixture, expectOk } from '../fixtures'
import { deliver } from '../webhooks/webhook-fixtures'

allowPrivateNetwork()
const [stripe, paypal] = [await startStripe(), await startPaypal()]
const at = await createPaymentsFixture(stripe.connection())
const monthly = { planId: at.pro, billingCycle: 'monthly' }
const newestSession = () => [...stripe.sessions.values()].at(-1)!
beforeAll(allowPrivateNetwork)
afterEach(() => {
  stripe.own.failWhen = () => undefined
  moveClock()
})
afterAll(async () => {
  denyPrivateNetwork()
  await Promise.all([stripe.stop(), paypal.stop()])
})

/** Delays the first answer to a path of Stripe, which may be a failure, until `release` is called. */
function holdFirstAnswer(path: RegExp, failure: { status?: number } = {}) {
  const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let isHeld = false
  stripe.own.failWhen = (request) => {
    if (isHeld || !path.test(request.path)) return
    isHeld = true
    arrived.resolve()
    return { ...failure, late: released.promise }
  }
  return { arrived: arrived.promise, release: released.resolve }
}

/** Starts a checkout that Stripe answers late, and meanwhile another one, which its claim no longer blocks. */
async function startTwoCheckouts(failure?: { status: number }) {
  const client = await at.createCustomer()
  const { arrived, release } = holdFirstAnswer(/\/sessions$/, failure)
  const first = client.post('/checkout', monthly)
  await arrived
  moveClock(now() + 61_000)
  const [{ _id: subscriptionId }] = await expectOk(client.get('/subscriptions'))
  const successUrl = 'https://shop.example.com/second'
  await expectOk(client.post('/checkout', { subscriptionId, successUrl }))
  const session = newestSession()
  release()
  const answer = await first
  await runDueJobs(at.tenant)
  return { client, subscriptionId, session, answer }
}

test('a Stripe session that is replaced by a checkout at PayPal expires without the subscription', async () => {
  const own = await createPaymentsFixture(stripe.connection())
  const client = await own.createCustomer()
  const { subscriptionId } = await expectOk(client.post('/checkout', { planId: own.pro, billingCycle: 'monthly' }))
  const before = stripe.events.length
  paypal.plan('P-PRO', '20.00')
  await expectOk(own.admin.put(`/plans/${own.pro}`, { externalIds: { paypal: { monthlyPlanId: 'P-PRO' } } }))
  const { _id: paymentSourceId } = await expectOk(own.admin.post('/integration-sources', paypal.connection()), 201)
  await expectOk(own.admin.put('/payments/configuration', { metadata: { paymentSourceId } }))
  await expectOk(client.post('/checkout', { subscriptionId }))
  await own.advanceClock(0)
  const events = stripe.events.slice(before)
  expect(events.map(({ type }) => type)).toEqual(['checkout.session.expired'])
  for (const event of events) await expectOk(deliver(own, 'stripe', stripe.signEvent(event)))
  expect(await own.status(subscriptionId)).toBe('pending')
})

test('a checkout that starts during a cancellation is canceled at the provider, too', async () => {
  const client = await at.createCustomer()
  const { subscriptionId } = await expectOk(client.post('/checkout', monthly))
  const { arrived, release } = holdFirstAnswer(/\/expire$/)
  const cancellation = client.put(`/subscriptions/${subscriptionId}/cancel`)
  await arrived
  await expectOk(client.post('/checkout', { subscriptionId, successUrl: 'https://shop.example.com/again' }))
  const session = newestSession()
  release()
  expect(await expectOk(cancellation)).toMatchObject({ status: 'canceled' })
  await runDueJobs(at.tenant)
  expect(stripe.sessions.get(session.id).status).toBe('expired')
})

test('a checkout that fails after another one has replaced it leaves the subscription and the other checkout', async () => {
  const { client, subscriptionId, session, answer } = await startTwoCheckouts({ status: 500 })
  expect(statusAndCode(answer)).toEqual([502, 'PROVIDER_ERROR'])
  const external = stripe.pay(session.id)
  for (const event of stripe.events.slice(-3)) await expectOk(deliver(at, 'stripe', stripe.signEvent(event)))
  expect(await expectOk(client.get('/subscriptions/me'))).toMatchObject({
    ...{ _id: subscriptionId, status: 'active', externalSubscriptionId: external },
  })
})

test('a checkout that is answered after another one has replaced it gets 409, and its session is expired', async () => {
  const { subscriptionId, session, answer } = await startTwoCheckouts()
  expect(statusAndCode(answer)).toEqual([409, 'ACTIVE_SUBSCRIPTION_EXISTS'])
  const sessions = [...stripe.sessions.values()].filter((one) => one.client_reference_id === subscriptionId)
  expect(sessions.map(({ id, status }) => [id === session.id, status])).toEqual([
    [false, 'expired'],
    [true, 'open'],
  ])
})
