import { and, eq, sql } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { emit } from '../../jobs/outbox'
import type { Tx } from '../../storage/port'
import { createRowWriter, prepareQuery } from '../../storage/prepared-statements'
import type { Tenant } from '../../tenancy/tenants'
import { providerOf } from '../providers'
import type { ProviderInvoice, ProviderKind } from '../providers/provider'
import { type Invoice, invoices, type Subscription } from '../tables'

/** The status that a trigger gives its invoice. Other triggers give none. */
const STATUS_BY_TRIGGER: Record<string, Invoice['status'] | undefined> = {
  paid: 'paid',
  'payment failed': 'open',
  voided: 'void',
}

const invoiceRows = createRowWriter(invoices)
const selectByExternalId = prepareQuery((tx) =>
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

const toIsoOrUndefined = (ms: number | undefined) => (ms === undefined ? undefined : toIsoString(ms))

/** Stores the invoice of a trigger, if the trigger gives it a status. */
export async function upsertInvoiceForTrigger(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  subscription: Subscription,
  trigger: string,
  invoice: ProviderInvoice,
  kind: ProviderKind | null = subscription.providerKind,
) {
  const status = STATUS_BY_TRIGGER[trigger]
  if (status && kind) await upsertInvoice(tx, ctx, subscription, kind, { ...invoice, status })
}

/**
 * Inserts or updates the invoice with the provider's id. An open invoice may become paid or void, and no other change is
 * made. Returns whether anything changed.
 */
export async function upsertInvoice(
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
    ...times
  }: ProviderInvoice & { status: Invoice['status'] },
): Promise<boolean> {
  const [before] = await selectByExternalId(tx, { providerKind, externalInvoiceId })
  if (before && before.status !== 'open') return false
  if (before && status === 'open') return false
  const time = toIsoString(now())
  const paidAt = status === 'paid' ? (toIsoOrUndefined(times.paidAt) ?? time) : null
  const [periodStart, periodEnd] = [toIsoOrUndefined(times.periodStart), toIsoOrUndefined(times.periodEnd)]
  const row: Invoice = {
    ...(before ?? { _id: Bun.randomUUIDv7(), subscriptionId, billableEntityType, billableEntityId, created: time }),
    ...{ providerKind, externalInvoiceId, status, amount, currency: currency.toUpperCase(), paidAt, updated: time },
    invoiceUrl: invoiceUrl ?? before?.invoiceUrl ?? null,
    periodStart: periodStart ?? before?.periodStart ?? null,
    periodEnd: periodEnd ?? before?.periodEnd ?? null,
    items: items ?? before?.items ?? [],
    refundOffered: before?.refundOffered ?? null,
  }
  await invoiceRows[before ? 'update' : 'insert'](tx, row)
  await emit(ctx, tx, {
    ...{ source: 'payments', kind: 'invoice', eventName: `invoice-${status}` },
    metadata: { invoiceId: row._id, subscriptionId: row.subscriptionId, externalInvoiceId, providerKind },
    user: row.billableEntityType === 'user' ? row.billableEntityId : null,
    workspace: row.billableEntityType === 'workspace' ? row.billableEntityId : null,
  })
  return true
}

/** Voids the open invoices that stand for failed payments, after another invoice of the subscription was paid. */
export async function voidPlaceholderInvoices(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  subscription: Subscription,
  kind: ProviderKind,
) {
  const { isPlaceholderInvoice } = providerOf(kind)
  if (!isPlaceholderInvoice) return
  const isOpen = and(eq(invoices.subscriptionId, subscription._id), eq(invoices.status, 'open'))
  for (const { externalInvoiceId, amount, currency } of await tx.select().from(invoices).where(isOpen))
    if (isPlaceholderInvoice(externalInvoiceId, subscription))
      await upsertInvoice(tx, ctx, subscription, kind, { externalInvoiceId, amount, currency, status: 'void' })
}
