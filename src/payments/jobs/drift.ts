import { DAY_MS, now, toIsoString } from '../../core/clock'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { fittingPeriod } from '../billing-period'
import type { ProviderKind, ProviderSubscription } from '../providers/provider'
import { carryOut } from '../subscriptions/effect-executor'
import { hasEnded, isOver } from '../subscriptions/transitions'
import type { Invoice, Subscription } from '../tables'

/** The differences between a subscription and its state at the provider, such as after a lost event. */
export type Drift = {
  status?: { ours: string; theirs: string }
  cancelAtPeriodEnd?: { ours: boolean; theirs: boolean }
  pause?: { ours: boolean; theirs: boolean }
  periodEnd?: { ours: string | null; theirs: string }
  /** The provider's ids of invoices that are missing here, or have another status. */
  invoices?: string[]
}

type KnownInvoice = Pick<Invoice, 'externalInvoiceId' | 'status'>

const counts = new Map<ProviderKind, number>()

/** Returns how many differences this process has found, by provider. */
export const driftCounts = (): ReadonlyMap<ProviderKind, number> => counts

const PERIOD_TOLERANCE_MS = DAY_MS

/** Returns the differences, or undefined if there are none. `invoices` are those that are stored here. */
export function driftOf(row: Subscription, theirs: ProviderSubscription, invoices: KnownInvoice[]): Drift | undefined {
  const lost = missingInvoices(theirs, invoices).map(({ externalInvoiceId }) => externalInvoiceId)
  const drift = { ...stateDrift(row, theirs), ...(lost.length && { invoices: lost }) }
  return Object.keys(drift).length ? drift : undefined
}

/** Returns the provider's invoices that were paid or voided unnoticed, and the open ones of an overdue subscription. */
export function missingInvoices({ invoices: theirInvoices, status }: ProviderSubscription, invoices: KnownInvoice[]) {
  const ourStatuses = new Map(invoices.map((invoice) => [invoice.externalInvoiceId, invoice.status]))
  return theirInvoices.filter(({ externalInvoiceId: id, status: theirs }) => {
    const ours = ourStatuses.get(id)
    if (ours !== undefined) return ours === 'open' && theirs !== 'open'
    return theirs === 'paid' || (theirs === 'open' && status === 'past_due')
  })
}

function stateDrift(row: Subscription, theirs: ProviderSubscription): Drift {
  const { status, cancelAtPeriodEnd, pause } = theirs
  // A pending state at the provider says nothing yet.
  if (status === 'pending') return {}
  const isEndedHere = hasEnded(row) || row.status === 'abandoned'
  if (isEndedHere && hasEnded({ status })) return {}
  if (row.status === 'lapsed' && isLapsedAtProvider(theirs)) return {}
  const periodEnd = fittingPeriod(theirs.periods, row.billingCycle)?.periodEnd ?? theirs.periodEnd
  const ours = row.currentPeriodEnd === null ? 0 : Date.parse(row.currentPeriodEnd)
  // The provider's calendar may differ from ours by a few hours.
  const hasMoved = periodEnd !== undefined && Math.abs(periodEnd - ours) > PERIOD_TOLERANCE_MS
  const areBothRunning = !isOver(row) && !hasEnded({ status })
  const isPauseKnown = pause === undefined || !pause === !row.pause
  return {
    ...(row.status !== status && { status: { ours: row.status, theirs: status } }),
    ...(areBothRunning &&
      cancelAtPeriodEnd !== undefined &&
      cancelAtPeriodEnd !== row.cancelAtPeriodEnd && {
        cancelAtPeriodEnd: { ours: row.cancelAtPeriodEnd, theirs: cancelAtPeriodEnd },
      }),
    ...(areBothRunning && hasMoved && { periodEnd: { ours: row.currentPeriodEnd, theirs: toIsoString(periodEnd) } }),
    ...(areBothRunning && !isPauseKnown && { pause: { ours: !!row.pause, theirs: !!pause } }),
  }
}

/** Returns whether a subscription is still unpaid, or not renewed, at the provider. */
export const isLapsedAtProvider = ({ status, cancelAtPeriodEnd, periodEnd }: ProviderSubscription) =>
  status === 'past_due' || (!!cancelAtPeriodEnd && periodEnd !== undefined && periodEnd <= now())

/** Emits an event about a difference, and counts it. */
export async function recordDrift(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  row: Subscription,
  kind: ProviderKind,
  drift: Drift | { missing: string },
  mended: boolean,
) {
  counts.set(kind, (counts.get(kind) ?? 0) + 1)
  const metadata = { providerKind: kind, mended, ...drift }
  await carryOut(tx, ctx, [{ kind: 'emit event', subscription: row, eventName: 'provider-drift', metadata }])
}
