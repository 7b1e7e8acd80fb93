import { DAY_MS, HOUR_MS, now } from '../../core/clock'
import type { JobHandler } from '../../jobs/worker'
import type { Tenant } from '../../tenancy/tenants'
import { type ConnectedProvider, getSubscriptionProvider, undefinedIfNotFound } from '../configuration'
import type { ProviderSubscription } from '../providers/provider'
import { throwJobFailure } from '../subscriptions/cancellation'
import type { ProviderLink } from '../subscriptions/schedule'
import { findSubscription } from '../subscriptions/subscriptions'
import { hasActiveStatus, hasEnded } from '../subscriptions/transitions'
import type { Subscription } from '../tables'
import { reconcile, settleUnused } from './reconciliation'

/**
 * Cancels a checkout or a subscription at the provider that is not used here. If it was paid meanwhile, and no other one is
 * in force, the local subscription uses it instead.
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
    const isLaterEnded =
      !isEarlierCheckout(current, orphan) ||
      (await endLaterCheckout(tenant, source, current, created).catch(throwJobFailure))
    if (isUsed && isLaterEnded) return { state: 'done' }
    const isEnded = !isUsed && (await cancelUnused(source, current, orphan).catch(throwJobFailure))
    if (isEnded) await settle(tenant, source, orphan, created).catch(throwJobFailure)
    if (isEnded || now() - created > (source.provider.approvalWindowMs ?? DAY_MS)) return { state: 'done' }
    return { state: 'again', due: now() + HOUR_MS }
  },
}

/**
 * Ends the latest checkout of a subscription that was paid by an earlier one, so that it is not paid too. If it was, and the
 * other one is overdue, the subscription uses it from now on. Returns whether nothing is left to do.
 */
async function endLaterCheckout(tenant: Tenant, source: ConnectedProvider, row: Subscription, since: number) {
  const external = await resolveExternalId(source, { ...row, externalSubscriptionId: null })
  const later = { ...row, externalSubscriptionId: external ?? null }
  if (external && (await isInUse(tenant, row, later))) return true
  const current = (await findSubscription(tenant.db, row._id)) ?? row
  const isEnded = await cancelUnused(source, current, later)
  if (isEnded) await settle(tenant, source, later, since)
  return isEnded
}

/** Stores what was paid for what was canceled: its checkout may have been paid right before. @throws 502 PROVIDER_ERROR */
async function settle(tenant: Tenant, source: ConnectedProvider, unused: Subscription, since: number) {
  const external = await resolveExternalId(source, unused)
  if (external) await settleUnused(tenant, source, unused, external, since)
}

/**
 * Cancels what is not used. What somebody paid for is canceled only if the subscription has another one in force, or somebody
 * asked for its end. Returns whether it has ended.
 */
async function cancelUnused({ provider, connection }: ConnectedProvider, row: Subscription, orphan: Subscription) {
  // Without a price of ours, nobody can have paid in a checkout of ours.
  if (hasActiveStatus(row) || row.endedBy === 'request' || row.basePrice === null)
    return provider.cancel(connection, orphan)
  const { externalSubscriptionId: external } = orphan
  if (external === null) return provider.cancel(connection, orphan, { unpaidOnly: true })
  const theirs = await provider.fetchSubscription(connection, external)
  return theirs && isKept(theirs) ? false : provider.cancel(connection, orphan)
}

const isKept = ({ status }: ProviderSubscription) => ['active', 'trialing', 'paused'].includes(status)

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
  if (id === null) return row.status !== 'abandoned' && checkout === row.externalCheckoutId
  if (row.externalSubscriptionId === id && row.status !== 'abandoned') return true
  if (hasActiveStatus(row)) return false
  await reconcile(tenant, { ...orphan, drift: row.drift })
  const after = await findSubscription(tenant.db, row._id)
  return after?.externalSubscriptionId === id && (after.status !== 'abandoned' || after.conflict !== null)
}
