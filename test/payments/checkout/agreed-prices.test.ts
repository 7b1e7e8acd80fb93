import { afterAll, beforeAll, expect, test } from 'bun:test'
import { paypal as paypalProvider } from '../../../src/payments/providers/paypal/provider'
import { startPaypal } from '../../fakes/vendors/paypal'
import { startStripe } from '../../fakes/vendors/stripe'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { statusAndCode } from '../../test-tenant'
import { createPaymentsFixture, expectOk } from '../fixtures'
import { createOrder, createResolvedConnection } from '../providers/provider-fixtures'
import { deliver } from '../webhooks/webhook-fixtures'

allowPrivateNetwork()
const [stripe, paypal] = [await startStripe(), await startPaypal()]
const at = await createPaymentsFixture(stripe.connection())
const { admin } = at
paypal.plan('P-CHEAP', '1.00')
stripe.price('price_30', 3000)
beforeAll(allowPrivateNetwork)
afterAll(async () => {
  denyPrivateNetwork()
  await Promise.all([stripe.stop(), paypal.stop()])
})

/** Creates a pending subscription to a dynamic plan of its own. */
async function subscribeToDynamicPlan() {
  const plan = await at.createPlan({ name: 'Made to measure', dynamic: true })
  const client = await at.createCustomer()
  const { _id: subscriptionId } = await expectOk(
    client.post('/subscriptions', { planId: plan._id, billingCycle: 'monthly' }),
  )
  const makeFixed = () =>
    expectOk(
      admin.put(`/plans/${plan._id}`, {
        ...{ dynamic: false, monthlyPrice: 30, yearlyPrice: 300 },
        externalIds: { stripe: { monthlyPriceId: 'price_30' } },
      }),
    )
  return { client, subscriptionId, makeFixed }
}

/** Orders a cheap plan at PayPal for a subscription, without a checkout of ours, and delivers the events. */
async function orderDirectly(subscriptionId: string) {
  await expectOk(admin.post('/integration-sources', paypal.connection()), 201)
  const order = createOrder({ subscriptionId, externalIds: { monthlyPlanId: 'P-CHEAP' } })
  const { externalSubscriptionId: id } = await paypalProvider.createCheckout(
    createResolvedConnection(paypal.connection()),
    order,
  )
  const before = paypal.events.length
  paypal.approve(id!)
  for (const event of paypal.events.slice(before)) await expectOk(deliver(at, 'paypal', paypal.signEvent(event)))
  await at.advanceClock(0)
  return paypal.subscriptions.get(id!)
}

test('a checkout of a subscription without a price gets 400 DYNAMIC_AMOUNT_NOT_SET, also when its plan has a fixed price by now', async () => {
  const { client, subscriptionId, makeFixed } = await subscribeToDynamicPlan()
  const UNPRICED = [400, 'DYNAMIC_AMOUNT_NOT_SET']
  expect(statusAndCode(await client.post('/checkout', { subscriptionId }))).toEqual(UNPRICED)
  await makeFixed()
  const before = stripe.sessions.size
  expect(statusAndCode(await client.post('/checkout', { subscriptionId }))).toEqual(UNPRICED)
  expect(stripe.sessions.size).toBe(before)
})

test('a customer pays the amount that an admin has set, also when the plan has a fixed price by now', async () => {
  const { client, subscriptionId, makeFixed } = await subscribeToDynamicPlan()
  await expectOk(admin.put(`/subscriptions/${subscriptionId}/dynamic-amount`, { amount: 12 }))
  await makeFixed()
  await expectOk(client.post('/checkout', { subscriptionId }))
  const external = stripe.pay([...stripe.sessions.keys()].at(-1)!)
  expect(stripe.subscriptions.get(external).items.data[0].price.unit_amount).toBe(1200)
})

test('a customer pays the price at which they have subscribed, also when the plan and its price at the provider are others by now', async () => {
  const plan = await at.createPlan({ name: 'Growing', monthlyPrice: 20, yearlyPrice: 200 })
  const client = await at.createCustomer()
  const { _id: subscriptionId } = await expectOk(
    client.post('/subscriptions', { planId: plan._id, billingCycle: 'monthly' }),
  )
  const externalIds = { stripe: { monthlyPriceId: 'price_30' } }
  await expectOk(admin.put(`/plans/${plan._id}`, { monthlyPrice: 30, externalIds }))
  await expectOk(client.post('/checkout', { subscriptionId }))
  const external = stripe.pay([...stripe.sessions.keys()].at(-1)!)
  expect(stripe.subscriptions.get(external).items.data[0].price.unit_amount).toBe(2000)
})

test('an order placed directly at PayPal, without a checkout before it, is repriced to the price of the subscription', async () => {
  const client = await at.createCustomer()
  const { _id } = await expectOk(client.post('/subscriptions', { planId: at.pro, billingCycle: 'monthly' }))
  const order = await orderDirectly(_id)
  expect(await expectOk(client.get('/subscriptions/me'))).toMatchObject({ _id, finalPrice: 20 })
  expect(order.price.value).toBe('20.00')
})

test('an order placed directly at PayPal for a subscription without a price is canceled there, and activates nothing', async () => {
  const { subscriptionId } = await subscribeToDynamicPlan()
  const order = await orderDirectly(subscriptionId)
  expect([await at.status(subscriptionId), order.status]).toEqual(['pending', 'CANCELLED'])
})
