import { HOUR_MS, now } from '../../core/clock'
import type { JobHandler } from '../../jobs/worker'
import type { Tenant } from '../../tenancy/tenants'
import { type ConnectedProvider, getSubscriptionProvider, undefinedIfNotFound } from '../configuration'
import { throwJobFailure } from '../subscriptions/cancellation'
import type { ProviderLink } from '../subscriptions/schedule'
import { findSubscription } from '../subscriptions/subscriptions'
import { hasEnded } from '../subscriptions/transitions'
import type { Subscription } from '../tables'
import { reconcile, recordMissedInvoices } from './reconciliation'

/**
 * Cancels a checkout or a subscription at the provider that is not used here. If it was paid meanwhile, and the local
 * subscription is still pending, it is activated instead.
 */
export const cancelOrphanedJob: JobHandler = {
  isOutgoing: true,
  retryFor: Number.POSITIVE_INFINITY,
  async run(tenant, { payload, created }) {
    const { subscription: id, ...link } = payload as { subscription: string } & ProviderLink
    const row = await findSubscription(tenant.db, id)
    const source = row && (await getSubscriptionProvider(tenant, link).catch(undefinedIfNotFound))
    if (!row || !source) return { state: 'done' }
    const external = await resolveExternalId(source, link).catch(throwJobFailure)
    const orphan = { ...row, ...link, externalSubscriptionId: external ?? null }
    const isUsed = await isInUse(tenant, row, orphan).catch(throwJobFailure)
    const current = (await findSubscription(tenant.db, id)) ?? row
    // The subscription was paid by an earlier checkout, so the later one must not be paid too.
    if (isEarlierCheckout(current, orphan)) {
      const later = { ...current, externalSubscriptionId: null }
      await source.provider.cancel(source.connection, later).catch(throwJobFailure)
    }
    if (isUsed) return { state: 'done' }
    const isEnded = await source.provider.cancel(source.connection, orphan).catch(throwJobFailure)
    if (isEnded && external) await recordMissedInvoices(tenant, source, row, external).catch(throwJobFailure)
    if (isEnded || now() - created > (source.provider.approvalWindowMs ?? 0)) return { state: 'done' }
    return { state: 'again', due: now() + HOUR_MS }
  },
}

const isEarlierCheckout = (
  row: Subscription,
  { externalSubscriptionId: id, externalCheckoutId: checkout }: ProviderLink,
) =>
  id !== null &&
  id === row.externalSubscriptionId &&
  checkout !== null &&
  row.externalCheckoutId !== null &&
  checkout !== row.externalCheckoutId

async function resolveExternalId(
  { provider, connection }: ConnectedProvider,
  { externalSubscriptionId: id, externalCheckoutId }: ProviderLink,
) {
  if (id !== null || externalCheckoutId === null) return id ?? undefined
  return provider.findSubscriptionId?.(connection, externalCheckoutId)
}

/** Returns whether the subscription uses the orphan, or uses it from now on. @throws what `reconcile` throws */
async function isInUse(tenant: Tenant, row: Subscription, orphan: Subscription): Promise<boolean> {
  if (hasEnded(row)) return false
  const { externalSubscriptionId: id, externalCheckoutId: checkout } = orphan
  if (id === null) return checkout === row.externalCheckoutId
  if (row.externalSubscriptionId === id) return true
  if (row.status !== 'pending') return false
  await reconcile(tenant, { ...orphan, drift: row.drift })
  return (await findSubscription(tenant.db, row._id))?.externalSubscriptionId === id
}
