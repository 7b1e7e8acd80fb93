import { expect } from 'bun:test'
import { eq } from 'drizzle-orm'
import { now, toIsoString } from '../../../src/core/clock'
import { invoices, type ProviderKind, type Subscription, subscriptions } from '../../../src/payments/tables'
import type { SignedWebhook } from '../../fakes/vendors/vendor'
import { callApi, type createTestTenant } from '../../test-tenant'

export type TenantFixture = Awaited<ReturnType<typeof createTestTenant>>

/** Sends a signed webhook unchanged. */
export const deliver = async (
  { origin }: Pick<TenantFixture, 'origin'>,
  kind: string,
  sent: SignedWebhook | Promise<SignedWebhook>,
  query = '',
) => {
  const { raw, headers } = await sent
  return callApi('POST', `${origin}/api/payments/webhooks/${kind}${query}`, { raw, headers })
}

// biome-ignore lint/suspicious/noExplicitAny: events of any vendor
type Vendor = { events: any[]; signEvent(event: any): SignedWebhook | Promise<SignedWebhook> }

/** Returns a function that delivers the new events of a vendor in the order of these types, and returns their statuses. */
export const createDelivery =
  (testTenant: Pick<TenantFixture, 'origin'>, kind: ProviderKind, vendor: Vendor) =>
  async (...types: string[]): Promise<string[]> => {
    const events = vendor.events.splice(0).map((event) => ({ event, type: event.event_type ?? event.type }))
    const statuses = []
    for (const type of types) {
      const place = events.findIndex((one) => one.type === type)
      expect(place, `There is no event ${type}.`).toBeGreaterThanOrEqual(0)
      const [{ event } = { event: undefined }] = events.splice(place, 1)
      statuses.push((await deliver(testTenant, kind, vendor.signEvent(event))).body.status)
    }
    expect(events.map(({ type }) => type)).toEqual([])
    return statuses
  }

let entities = 0

/** Returns a pending subscription of a new entity, which is not stored. */
export function pendingSubscription(more: Partial<Subscription> = {}): Subscription {
  const time = toIsoString(now())
  return {
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
    ...{ pause: null, conflict: null, endedBy: null, periodAnchor: null },
    ...more,
  }
}

/** Creates a pending subscription of a new entity. */
export async function createPendingSubscription(
  { tenant }: Pick<TenantFixture, 'tenant'>,
  more: Partial<Subscription> = {},
): Promise<Subscription> {
  const row = pendingSubscription(more)
  await tenant.write((tx) => tx.insert(subscriptions).values(row))
  return row
}

export const findSubscription = async ({ tenant }: Pick<TenantFixture, 'tenant'>, { _id }: Pick<Subscription, '_id'>) =>
  (await tenant.db.select().from(subscriptions).where(eq(subscriptions._id, _id)).get())!

/** Returns the provider id, status, amount and currency of each invoice of a subscription. */
export const invoicesOf = async ({ tenant }: Pick<TenantFixture, 'tenant'>, { _id }: Pick<Subscription, '_id'>) =>
  (
    await tenant.db
      .select()
      .from(invoices)
      .where(eq(invoices.subscriptionId, _id))
      .orderBy(invoices.created, invoices._id)
  ).map(({ externalInvoiceId, status, amount, currency }) => [externalInvoiceId, status, amount, currency])

/** Returns the metadata that a checkout sends to the provider. */
export const metadataOf = ({ id }: Pick<TenantFixture, 'id'>, { _id, billableEntityId }: Subscription) => ({
  ...{ tenant: id, subscription: _id, entity: `user:${billableEntityId}` },
})

export const createConnection = async (testTenant: TenantFixture, connection: object): Promise<string> => {
  const { status, body } = await testTenant.as('admin').post('/integration-sources', connection)
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body._id
}
