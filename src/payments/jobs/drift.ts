import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { ProviderKind, ProviderSubscription } from '../providers/provider'
import { ENDED } from '../subscriptions/moves'
import { note } from '../subscriptions/telling'
import type { Invoice, Subscription } from '../tables'

/** In what a subscription here differs from what its provider has: what was lost on the way. */
export type Drift = {
  status?: { ours: string; theirs: string }
  cancelAtPeriodEnd?: { ours: boolean; theirs: boolean }
  periodEnd?: { ours: string | null; theirs: string }
  /** The provider's names of those that are missing, or that stand otherwise. */
  invoices?: string[]
}

type Known = Pick<Invoice, 'externalInvoiceId' | 'status'>

const counts = new Map<ProviderKind, number>()

/** How often this process has found a difference, by provider. */
export const driftsFound = (): ReadonlyMap<ProviderKind, number> => counts

const DAY = 86_400_000

/** What differs, if anything does. `invoices` are those that are known here. */
export function driftOf(row: Subscription, theirs: ProviderSubscription, invoices: Known[]): Drift | undefined {
  const lost = missedOf(theirs, invoices).map(({ externalInvoiceId }) => externalInvoiceId)
  const drift = { ...standingDrift(row, theirs), ...(lost.length && { invoices: lost }) }
  return Object.keys(drift).length ? drift : undefined
}

/** Invoices that were paid or given up without us, and those that are to be paid by who is late. */
export function missedOf({ invoices: told, status }: ProviderSubscription, invoices: Known[]) {
  const known = new Map(invoices.map((invoice) => [invoice.externalInvoiceId, invoice.status]))
  return told.filter(({ externalInvoiceId: id, status: theirs }) => {
    const ours = known.get(id)
    if (ours !== undefined) return ours === 'open' && theirs !== 'open'
    return theirs === 'paid' || (theirs === 'open' && status === 'past_due')
  })
}

function standingDrift(row: Subscription, { status, periodEnd, cancelAtPeriodEnd }: ProviderSubscription): Drift {
  // What was not decided there yet says nothing.
  if (status === 'pending') return {}
  const over = [row.status, status].map((one) => ENDED.includes(one))
  if (over[0] && over[1]) return {}
  const ours = row.currentPeriodEnd === null ? 0 : Date.parse(row.currentPeriodEnd)
  // By a few hours their clocks may differ from our calendar.
  const moved = periodEnd !== undefined && Math.abs(periodEnd - ours) > DAY
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
export async function tellDrift(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  row: Subscription,
  kind: ProviderKind,
  drift: Drift | { missing: string },
  mended: boolean,
) {
  counts.set(kind, (counts.get(kind) ?? 0) + 1)
  await note(ctx, tx, row, 'provider-drift', { providerKind: kind, mended, ...drift })
}
