import { and, eq } from 'drizzle-orm'
import { now } from '../../core/clock'
import type { Db, Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { addSpan, cycleSpan } from '../billing-period'
import { type ConnectedProvider, getSubscriptionProvider } from '../configuration'
import type { ProviderInvoice, ProviderKind, ProviderSubscription } from '../providers/provider'
import { carryOut } from '../subscriptions/effect-executor'
import type { Effect } from '../subscriptions/effects'
import { providerCancelOf } from '../subscriptions/follow-ups'
import { transition } from '../subscriptions/state-machine'
import { findSubscription, getSubscription } from '../subscriptions/subscriptions'
import { hasActiveStatus, hasEnded } from '../subscriptions/transitions'
import { invoices, type Subscription, subscriptions } from '../tables'
import { driftOf, missingInvoices, recordDrift } from './drift'

/**
 * Brings a subscription to its state at the provider, such as after a lost event. A difference that cannot be repaired is
 * reported once. If the subscription changes meanwhile, nothing is done, and the next run finds what is left.
 * Returns the state at the provider, or undefined if it knows no such subscription.
 * @throws 404 when the connection was removed, 502 PROVIDER_ERROR
 */
export async function reconcile(tenant: Tenant, row: Subscription): Promise<ProviderSubscription | undefined> {
  const { provider, connection, kind } = await getSubscriptionProvider(tenant, row)
  const { externalSubscriptionId, externalCheckoutId } = row
  const external =
    externalSubscriptionId ??
    (externalCheckoutId === null ? undefined : await provider.findSubscriptionId?.(connection, externalCheckoutId))
  if (!external) return
  const fetchedAt = now()
  const theirs = await provider.fetchSubscription(connection, external)
  const drift = theirs ? driftOf(row, theirs, await listInvoicesOf(tenant.db, kind, row)) : { missing: external }
  const driftText = drift && JSON.stringify(drift)
  if (!drift && row.drift === null) return theirs
  await tenant.write(async (tx) => {
    const current = await getSubscription(tx, row._id)
    if (current.updated !== row.updated || current.status !== row.status) return
    const isReported = driftText === current.drift
    const isRepaired =
      !!theirs && !!drift && (await repair(tx, tenant, current, kind, theirs, { fetchedAt, isReported }))
    if (drift && (isRepaired || !isReported)) await recordDrift(tx, tenant, current, kind, drift, isRepaired)
    const left = isRepaired || !driftText ? null : driftText
    if (left !== current.drift)
      await tx.update(subscriptions).set({ drift: left }).where(eq(subscriptions._id, row._id))
  })
  return theirs
}

/**
 * Stores the invoices of a subscription that was canceled at its provider because it is not used here. What was paid for a
 * time after `since` (ms) should be given back: admins are told. @throws 502 PROVIDER_ERROR
 */
export async function settleUnused(
  tenant: Tenant,
  { provider, connection, kind }: ConnectedProvider,
  { _id }: Subscription,
  external: string,
  since: number,
) {
  const theirs = await provider.fetchSubscription(connection, external)
  if (!theirs?.invoices.some(({ status }) => status !== 'open')) return
  await tenant.write(async (tx) => {
    const row = await findSubscription(tx, _id)
    if (!row) return
    const missed = await upsertMissedInvoices(tx, tenant, row, kind, theirs)
    if (missed.length) await recordDrift(tx, tenant, row, kind, { invoices: missed }, true)
    const why = hasActiveStatus(row) ? PAID_TWICE : 'It was paid, and the subscription is not in force.'
    const unused = theirs.invoices.filter((one) => one.amount && !one.isExtra && isUnused(one, row, external, since))
    const offer = { kind: 'offer refund', subscription: row, providerKind: kind, why } as const
    const offers = unused.map((invoice) => ({ ...offer, invoice }))
    await carryOut(tx, tenant, offers)
  })
}
const PAID_TWICE = 'It was paid by another checkout of the same subscription.'

/** Returns whether an invoice was paid for a time after `since`, in which the subscription does not use it. */
function isUnused({ paidAt = now(), periodEnd }: ProviderInvoice, row: Subscription, external: string, since: number) {
  if (row.externalSubscriptionId === external && !(hasEnded(row) && paidAt > Date.parse(row.updated))) return false
  return (periodEnd ?? addSpan(paidAt, cycleSpan(row.billingCycle))) > since
}

async function upsertMissedInvoices(
  tx: Tx,
  tenant: Tenant,
  row: Subscription,
  kind: ProviderKind,
  theirs: ProviderSubscription,
): Promise<string[]> {
  const missed = missingInvoices(theirs, await listInvoicesOf(tx, kind, row))
  const target = { subscription: row, providerKind: kind }
  const effects = missed.flatMap((invoice): Effect[] => [
    { kind: 'save invoice', ...target, invoice },
    ...(invoice.status === 'paid' ? [{ kind: 'void placeholder invoices' as const, ...target }] : []),
  ])
  await carryOut(tx, tenant, effects)
  return missed.map(({ externalInvoiceId }) => externalInvoiceId)
}

const listInvoicesOf = (db: Pick<Db, 'select'>, kind: ProviderKind, { _id }: Subscription) =>
  db
    .select()
    .from(invoices)
    .where(and(eq(invoices.subscriptionId, _id), eq(invoices.providerKind, kind)))

type RepairContext = { fetchedAt: number; isReported: boolean }

/** Repairs a subscription, and returns whether it is as the provider has it afterwards. */
async function repair(
  tx: Tx,
  tenant: Tenant,
  row: Subscription,
  kind: ProviderKind,
  theirs: ProviderSubscription,
  { fetchedAt, isReported }: RepairContext,
): Promise<boolean> {
  const { invoices: _, ...state } = theirs
  await upsertMissedInvoices(tx, tenant, row, kind, theirs)
  const { externalSubscriptionId } = theirs
  if (hasEnded(row)) {
    if (hasEnded(theirs) || theirs.status === 'pending') return true
    // Somebody asked for its end here, so it is ended at the provider too.
    if (!isReported && row.endedBy === 'request')
      await carryOut(tx, tenant, providerCancelOf(row._id, { ...row, externalSubscriptionId }))
    return false
  }
  if (theirs.status === 'pending') return true
  // Providers report times in seconds, so later events within the current second must still count.
  const occurredAt = Math.max(fetchedAt - (fetchedAt % 1000), row.lastEventAt ?? 0)
  const input = { ...state, occurredAt, providerKind: kind, externalSubscriptionId, isReported }
  return (await transition(tx, tenant, row, 'updated', input)).outcome === 'applied'
}
