import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { moveClock } from '../../../src/core/clock'
import { stripe } from '../../../src/payments/providers/stripe/provider'
import { startStripe } from '../../fakes/vendors/stripe'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { createTestTenant } from '../../test-tenant'
import { createOpenedConnection, createOrder } from '../providers/provider-fixtures'
import { createConnection, createPendingSubscription, deliver, findSubscription, metadataOf } from './webhook-fixtures'

// The endpoint at the provider, and so its secret, stays when a connection is made anew for another API key.
const there = await createTestTenant()
const SECRET = 'whsec_of_the_endpoint'
const [before, after] = [await startStripe({ secret: SECRET }), await startStripe({ secret: SECRET })]
let sources: { before: string; after: string }
beforeAll(async () => {
  allowPrivateNetwork()
  sources = {
    before: await createConnection(there, before.connection()),
    after: await createConnection(there, after.connection()),
  }
})
afterEach(() => moveClock(Date.now()))
afterAll(async () => {
  denyPrivateNetwork()
  await before.stop()
  await after.stop()
})

/** Pays for a subscription whose checkout was made by one of the connections, and delivers what Stripe tells. */
async function buy(providerSourceId: string | null, vendor = after) {
  const row = await createPendingSubscription(there, { providerKind: 'stripe', providerSourceId })
  const one = createOrder({ subscriptionId: row._id, metadata: metadataOf(there, row) })
  const { externalCheckoutId } = await stripe.createCheckout(createOpenedConnection(vendor.connection()), one)
  vendor.pay(externalCheckoutId!)
  for (const event of vendor.events.splice(0))
    expect((await deliver(there, 'stripe', vendor.sent(event))).status).toBe(200)
  return findSubscription(there, row)
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
  const other = await startStripe({ secret: 'whsec_of_another_account' })
  try {
    const source = await createConnection(there, other.connection())
    expect(await buy(source)).toMatchObject({ status: 'active', providerSourceId: sources.before })
  } finally {
    await other.stop()
  }
})
