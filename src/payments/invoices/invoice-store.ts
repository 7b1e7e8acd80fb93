import { and, eq, sql } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { emit } from '../../jobs/outbox'
import { createRowWriter, prepareFirst } from '../../storage/prepared-statements'
import { providerOf } from '../providers'
import type { Action } from '../subscriptions/effects'
import { type Invoice, invoices } from '../tables'

const invoiceRows = createRowWriter(invoices)
const findByExternalId = prepareFirst((tx) => {
  const [kind, id] = [sql.placeholder('providerKind'), sql.placeholder('externalInvoiceId')]
  const hasId = and(eq(invoices.providerKind, kind), eq(invoices.externalInvoiceId, id))
  return tx.select().from(invoices).where(hasId)
})

const toIsoOrUndefined = (ms: number | undefined) => (ms === undefined ? undefined : toIsoString(ms))

/**
 * Inserts or updates the invoice with the provider's id. An open invoice may become paid or void, and no other change is
 * made.
 */
export const saveInvoice: Action<'save invoice'> = async (tx, ctx, { subscription, providerKind, invoice }) => {
  const { _id: subscriptionId, billableEntityType, billableEntityId } = subscription
  const { status, externalInvoiceId, amount, currency, invoiceUrl, items, ...times } = invoice
  const before = await findByExternalId(tx, { providerKind, externalInvoiceId })
  if (before && (before.status !== 'open' || status === 'open')) return
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
}

/** Voids the open invoices that stand for failed payments, after another invoice of the subscription was paid. */
export const voidPlaceholderInvoices: Action<'void placeholder invoices'> = async (tx, ctx, effect) => {
  const { subscription, providerKind } = effect
  const { isPlaceholderInvoice } = providerOf(providerKind)
  if (!isPlaceholderInvoice) return
  const isOpen = and(eq(invoices.subscriptionId, subscription._id), eq(invoices.status, 'open'))
  for (const { externalInvoiceId, amount, currency } of await tx.select().from(invoices).where(isOpen)) {
    const invoice = { externalInvoiceId, amount, currency, status: 'void' } as const
    if (isPlaceholderInvoice(externalInvoiceId, subscription))
      await saveInvoice(tx, ctx, { kind: 'save invoice', subscription, providerKind, invoice })
  }
}
