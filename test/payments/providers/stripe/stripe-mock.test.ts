import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { stripe } from '../../../../src/payments/providers/stripe/provider'
import { findFreePort } from '../../../fakes/pebble'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../../plugins/fixtures'
import { waitUntil } from '../../../wait-until'
import { createOrder, createResolvedConnection, createSubscriptionRow } from '../provider-fixtures'

const program = Bun.which('stripe-mock', { PATH: `${process.env.PATH}:${process.env.HOME}/go/bin` })
if (!program) console.warn('Skipped: stripe-mock is not installed. CONTRIBUTING.md says how to install it.')

/** Stripe's own program, which refuses requests that its published description does not allow. */
describe.skipIf(!program)('stripe-mock', () => {
  let child: Bun.Subprocess
  let connection: never
  beforeAll(async () => {
    allowPrivateNetwork()
    const port = await findFreePort()
    child = Bun.spawn([program!, '-http-port', `${port}`, '-https-port', `${await findFreePort()}`], {
      ...{ stdout: 'ignore', stderr: 'ignore' },
    })
    const apiUrl = `http://127.0.0.1:${port}`
    const isUp = () =>
      fetch(apiUrl).then(
        () => true,
        () => false,
      )
    await waitUntil(isUp, Boolean, 30_000)
    const authentication = { secretKey: 'sk_test_123', webhookSecret: 'whsec_test' }
    connection = createResolvedConnection({ name: 'mock', kind: 'stripe', metadata: { apiUrl }, authentication })
  })
  afterAll(async () => {
    denyPrivateNetwork()
    child.kill()
    await child.exited
  })

  test.each([
    ['a price of the plan', { externalIds: { monthlyPriceId: 'price_pro' } }],
    ['another price', { isPlanPrice: false, amount: 1234, externalIds: { productId: 'prod_1' } }],
    ['a yearly price in yen', { billingCycle: 'yearly' as const, currency: 'JPY', amount: 20_000 }],
    ['no customer and no pages', { customer: {} }],
  ])('takes the checkout of a plan with %s', async (_, more) => {
    const checkout = await stripe.createCheckout(connection, createOrder(more))
    expect(checkout.externalCheckoutId).toStartWith('cs_')
  })

  test('takes the requests about a checkout and a subscription', async () => {
    const paid = createSubscriptionRow({ externalSubscriptionId: 'sub_1', externalCheckoutId: 'cs_1' })
    const unpaid = createSubscriptionRow({ externalSubscriptionId: null, externalCheckoutId: 'cs_1' })
    expect(await stripe.fetchSubscription(connection, 'sub_1')).toMatchObject({ externalSubscriptionId: 'sub_1' })
    await stripe.reprice(connection, paid, 2_500)
    expect(await stripe.cancel(connection, unpaid)).toBeTrue()
    expect(await stripe.cancel(connection, paid)).toBeTrue()
  })
})
