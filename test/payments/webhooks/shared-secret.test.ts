import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { moveClock } from '../../../src/core/clock'
import { stripe } from '../../../src/payments/providers/stripe/provider'
import { startStripe } from '../../fakes/vendors/stripe'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { createTestTenant } from '../../test-tenant'
import { createOrder, createResolvedConnection } from '../providers/provider-fixtures'
import { createConnection, createPendingSubscription, deliver, findSubscription, metadataOf } from './webhook-fixtures'

// The endpoint at the provider keeps its secret when a connection is recreated for another API key.
const testTenant = await createTestTenant()
const SECRET = 'whsec_of_the_endpoint'
const [before, after] = [await startStripe({ secret: SECRET }), await startStripe({ secret: SECRET })]
let sources: { before: string; after: string }
beforeAll(async () => {
  allowPrivateNetwork()
  sources = {
    before: await createConnection(testTenant, before.connection()),
    after: await createConnection(testTenant, after.connection()),
  }
})
afterEach(() => moveClock())
afterAll(async () => {
  denyPrivateNetwork()
  await before.stop()
  await after.stop()
})

/** Pays for a subscription whose checkout used this connection, and delivers the events of Stripe. */
async function buy(providerSourceId: string | null, vendor = after) {
  const row = await createPendingSubscription(testTenant, { providerKind: 'stripe', providerSourceId })
  const one = createOrder({ subscriptionId: row._id, metadata: metadataOf(testTenant, row) })
  const { externalCheckoutId } = await stripe.createCheckout(createResolvedConnection(vendor.connection()), one)
  vendor.pay(externalCheckoutId!)
  for (const event of vendor.events.splice(0))
    expect((await deliver(testTenant, 'stripe', vendor.signEvent(event))).status).toBe(200)
  return findSubscription(testTenant, row)
}

test('a payment keeps the connection of its checkout when the secret of that connection verifies the webhook as well', async () => {
  for (const source of [sources.before, sources.after])
    expect(await buy(source)).toMatchObject({ status: 'active', providerSourceId: source })
})

test('a payment takes the connection that verified the webhook when its checkout names none that still exists', async () => {
  for (const source of [null, 'a-connection-that-was-removed'])
    expect(await buy(source)).toMatchObject({ status: 'active', providerSourceId: sources.before })
})

test('a payment takes the connection that verified the webhook when that of its checkout has another secret', async () => {
  const otherAccount = await startStripe({ secret: 'whsec_of_another_account' })
  try {
    const source = await createConnection(testTenant, otherAccount.connection())
    expect(await buy(source)).toMatchObject({ status: 'active', providerSourceId: sources.before })
  } finally {
    await otherAccount.stop()
  }
})
