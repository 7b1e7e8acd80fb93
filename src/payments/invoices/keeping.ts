import { and, eq, sql } from 'drizzle-orm'
import { iso, now } from '../../core/clock'
import { emit } from '../../jobs/outbox'
import { compiled, rowsOf } from '../../storage/compiled'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { ProviderInvoice, ProviderKind } from '../providers/provider'
import { type Invoice, invoices, type Subscription } from '../tables'

/** What triggers say of an invoice that comes with them; others say nothing of it. */
const STATUS: Record<string, Invoice['status'] | undefined> = { paid: 'paid', 'payment failed': 'open', voided: 'void' }

const rows = rowsOf(invoices)
const known = compiled((tx) =>
  tx
    .select()
    .from(invoices)
    .where(
      and(
        eq(invoices.providerKind, sql.placeholder('providerKind')),
        eq(invoices.externalInvoiceId, sql.placeholder('externalInvoiceId')),
      ),
    ),
)

const moment = (ms: number | undefined) => (ms === undefined ? undefined : iso(ms))

/** Keeps what a trigger says of an invoice. */
export async function keepInvoice(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  subscription: Subscription,
  trigger: string,
  told: ProviderInvoice,
  kind: ProviderKind | null = subscription.providerKind,
) {
  const status = STATUS[trigger]
  if (status && kind) await settleInvoice(tx, ctx, subscription, kind, { ...told, status })
}

/**
 * Keeps an invoice as the provider has it, each of its ids once. What is open becomes paid or void, and nothing comes
 * back. Answers whether that changed anything.
 */
export async function settleInvoice(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  { _id: subscriptionId, billableEntityType, billableEntityId }: Subscription,
  providerKind: ProviderKind,
  {
    status,
    externalInvoiceId,
    amount,
    currency,
    invoiceUrl,
    items,
    ...told
  }: ProviderInvoice & { status: Invoice['status'] },
): Promise<boolean> {
  const [before] = await known(tx, { providerKind, externalInvoiceId })
  if (before && before.status !== 'open') return false
  if (before && status === 'open') return false
  const time = iso(now())
  const paidAt = status === 'paid' ? (moment(told.paidAt) ?? time) : null
  const [periodStart, periodEnd] = [moment(told.periodStart), moment(told.periodEnd)]
  const row: Invoice = {
    ...(before ?? { _id: Bun.randomUUIDv7(), subscriptionId, billableEntityType, billableEntityId, created: time }),
    ...{ providerKind, externalInvoiceId, status, amount, currency: currency.toUpperCase(), paidAt, updated: time },
    invoiceUrl: invoiceUrl ?? before?.invoiceUrl ?? null,
    periodStart: periodStart ?? before?.periodStart ?? null,
    periodEnd: periodEnd ?? before?.periodEnd ?? null,
    items: items ?? before?.items ?? [],
  }
  await rows[before ? 'update' : 'insert'](tx, row)
  await emit(ctx, tx, {
    ...{ source: 'payments', kind: 'invoice', eventName: `invoice-${status}` },
    metadata: { invoiceId: row._id, subscriptionId: row.subscriptionId, externalInvoiceId, providerKind },
    user: row.billableEntityType === 'user' ? row.billableEntityId : null,
    workspace: row.billableEntityType === 'workspace' ? row.billableEntityId : null,
  })
  return true
}
