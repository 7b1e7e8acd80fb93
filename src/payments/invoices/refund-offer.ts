import { and, eq, isNull } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { fromMinorUnits } from '../money'
import type { ProviderInvoice, ProviderKind } from '../providers/provider'
import { emitSubscriptionEvent } from '../subscriptions/subscription-events'
import { invoices, type Subscription } from '../tables'

/** Tells admins that a stored payment should be given back, once for each invoice. */
export async function offerRefund(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  row: Subscription,
  providerKind: ProviderKind,
  { externalInvoiceId, amount, ...invoice }: ProviderInvoice,
  why: string,
) {
  const isUnoffered = and(
    eq(invoices.providerKind, providerKind),
    eq(invoices.externalInvoiceId, externalInvoiceId),
    eq(invoices.status, 'paid'),
    isNull(invoices.refundOffered),
  )
  const offered = await tx
    .update(invoices)
    .set({ refundOffered: toIsoString(now()) })
    .where(isUnoffered)
    .returning({ _id: invoices._id })
  if (!offered.length) return
  const currency = invoice.currency.toUpperCase()
  const payment = { externalInvoiceId, amount: fromMinorUnits(amount, currency), currency }
  await emitSubscriptionEvent(ctx, tx, row, 'refund-offered', { ...payment, providerKind, why })
}
