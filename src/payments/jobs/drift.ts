import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { ProviderKind, ProviderSubscription } from '../providers/provider'
import { emitSubscriptionEvent } from '../subscriptions/subscription-events'
import { TERMINAL_STATUSES } from '../subscriptions/transitions'
import type { Invoice, Subscription } from '../tables'

/** In what a subscription here differs from what its provider has: what was lost on the way. */
export type Drift = {
  status?: { ours: string; theirs: string }
  cancelAtPeriodEnd?: { ours: boolean; theirs: boolean }
  periodEnd?: { ours: string | null; theirs: string }
  /** The provider's names of those that are missing, or that stand otherwise. */
  invoices?: string[]
}

type KnownInvoice = Pick<Invoice, 'externalInvoiceId' | 'status'>

const counts = new Map<ProviderKind, number>()

/** How often this process has found a difference, by provider. */
export const driftCounts = (): ReadonlyMap<ProviderKind, number> => counts

const PERIOD_TOLERANCE_MS = 86_400_000

/** What differs, if anything does. `invoices` are those that are known here. */
export function driftOf(row: Subscription, theirs: ProviderSubscription, invoices: KnownInvoice[]): Drift | undefined {
  const lost = missingInvoices(theirs, invoices).map(({ externalInvoiceId }) => externalInvoiceId)
  const drift = { ...stateDrift(row, theirs), ...(lost.length && { invoices: lost }) }
  return Object.keys(drift).length ? drift : undefined
}

/** Invoices that were paid or given up without us, and those that are to be paid by who is late. */
export function missingInvoices({ invoices: theirInvoices, status }: ProviderSubscription, invoices: KnownInvoice[]) {
  const ourStatuses = new Map(invoices.map((invoice) => [invoice.externalInvoiceId, invoice.status]))
  return theirInvoices.filter(({ externalInvoiceId: id, status: theirs }) => {
    const ours = ourStatuses.get(id)
    if (ours !== undefined) return ours === 'open' && theirs !== 'open'
    return theirs === 'paid' || (theirs === 'open' && status === 'past_due')
  })
}

function stateDrift(row: Subscription, { status, periodEnd, cancelAtPeriodEnd }: ProviderSubscription): Drift {
  // What was not decided there yet says nothing.
  if (status === 'pending') return {}
  const over = [row.status, status].map((one) => TERMINAL_STATUSES.includes(one))
  if (over[0] && over[1]) return {}
  const ours = row.currentPeriodEnd === null ? 0 : Date.parse(row.currentPeriodEnd)
  // By a few hours their clocks may differ from our calendar.
  const moved = periodEnd !== undefined && Math.abs(periodEnd - ours) > PERIOD_TOLERANCE_MS
  const both = !over[0] && !over[1]
  return {
    ...(row.status !== status && { status: { ours: row.status, theirs: status } }),
    ...(both &&
      cancelAtPeriodEnd !== undefined &&
      cancelAtPeriodEnd !== row.cancelAtPeriodEnd && {
        cancelAtPeriodEnd: { ours: row.cancelAtPeriodEnd, theirs: cancelAtPeriodEnd },
      }),
    ...(both && moved && { periodEnd: { ours: row.currentPeriodEnd, theirs: new Date(periodEnd).toISOString() } }),
  }
}

/** Has people know, and counts it. */
export async function recordDrift(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  row: Subscription,
  kind: ProviderKind,
  drift: Drift | { missing: string },
  mended: boolean,
) {
  counts.set(kind, (counts.get(kind) ?? 0) + 1)
  await emitSubscriptionEvent(ctx, tx, row, 'provider-drift', { providerKind: kind, mended, ...drift })
}
