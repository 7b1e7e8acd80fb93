import { eq } from 'drizzle-orm'
import { now, toIsoString } from '../../../src/core/clock'
import { invoices, type Subscription, subscriptions } from '../../../src/payments/tables'
import type { SignedWebhook } from '../../fakes/vendors/vendor'
import { callApi, type createTestTenant } from '../../test-tenant'

export type TenantFixture = Awaited<ReturnType<typeof createTestTenant>>

/** Sends what a vendor has signed, as it is. */
export const deliver = async (
  { origin }: Pick<TenantFixture, 'origin'>,
  kind: string,
  sent: SignedWebhook | Promise<SignedWebhook>,
  query = '',
) => {
  const { raw, headers } = await sent
  return callApi('POST', `${origin}/api/payments/webhooks/${kind}${query}`, { raw, headers })
}

let entities = 0

/** A subscription that waits to be paid, of an entity of its own. */
export async function createPendingSubscription(
  { tenant }: Pick<TenantFixture, 'tenant'>,
  more: Partial<Subscription> = {},
): Promise<Subscription> {
  const time = toIsoString(now())
  const row: Subscription = {
    ...{
      _id: Bun.randomUUIDv7(),
      planId: Bun.randomUUIDv7(),
      billableEntityType: 'user',
      billableEntityId: `u${entities++}`,
    },
    ...{ status: 'pending', billingCycle: 'monthly', currency: 'USD', basePrice: 2000, dynamicAmount: null },
    ...{ couponId: null, couponCode: null, discount: null, couponBenefitEndsAt: null, metadata: {} },
    ...{ currentPeriodStart: null, currentPeriodEnd: null, trialEndsAt: null, pastDueSince: null },
    ...{ cancelAtPeriodEnd: false, cancelRequested: null, providerKind: null, providerSourceId: null },
    ...{ externalSubscriptionId: null, externalCheckoutId: null, checkoutUntil: null, lastEventAt: null },
    ...{ checkoutAmount: null, failedCheckouts: 0 },
    ...{ created: time, updated: time, drift: null },
    ...more,
  }
  await tenant.write((tx) => tx.insert(subscriptions).values(row))
  return row
}

export const findSubscription = async ({ tenant }: Pick<TenantFixture, 'tenant'>, { _id }: Pick<Subscription, '_id'>) =>
  (await tenant.db.select().from(subscriptions).where(eq(subscriptions._id, _id)).get())!

/** Its invoices: how the provider calls them, what has become of them, and over how much they are. */
export const invoicesOf = async ({ tenant }: Pick<TenantFixture, 'tenant'>, { _id }: Pick<Subscription, '_id'>) =>
  (
    await tenant.db
      .select()
      .from(invoices)
      .where(eq(invoices.subscriptionId, _id))
      .orderBy(invoices.created, invoices._id)
  ).map(({ externalInvoiceId, status, amount, currency }) => [externalInvoiceId, status, amount, currency])

/** What our checkout tells a provider of a subscription. */
export const metadataOf = ({ id }: Pick<TenantFixture, 'id'>, { _id, billableEntityId }: Subscription) => ({
  ...{ tenant: id, subscription: _id, entity: `user:${billableEntityId}` },
})

export const createConnection = async (there: TenantFixture, connection: object): Promise<string> => {
  const { status, body } = await there.as('admin').post('/integration-sources', connection)
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body._id
}
