import type { InvoiceItem } from '../../tables'
import { nonEmptyText, parsePeriod, parseTime, toMap } from '../event-parser'
import type { Period, ProviderInvoice } from '../provider'
import { fromStripeAmount } from './amounts'

type StripeRef = string | { id: string } | null
type Metadata = Record<string, string> | null
type Details = { metadata?: Metadata; subscription?: StripeRef }

type Line = {
  amount?: number
  description?: string | null
  quantity?: number | null
  period?: { start: number; end: number }
  metadata?: Metadata
  subscription?: StripeRef
  parent?: { subscription_item_details?: { subscription?: StripeRef } | null } | null
}

/** An invoice of Stripe, in old API versions and new: the subscription moved into `parent` with version 2025-03-31. */
export type StripeInvoice = {
  id?: string
  status?: string | null
  billing_reason?: string | null
  amount_paid?: number
  amount_due?: number
  currency?: string
  hosted_invoice_url?: string | null
  invoice_pdf?: string | null
  period_start?: number
  period_end?: number
  status_transitions?: { paid_at?: number | null } | null
  subscription?: StripeRef
  subscription_details?: Details | null
  parent?: { subscription_details?: Details | null } | null
  lines?: { data?: Line[] }
}

/** Returns the status of an invoice, or undefined for a draft. */
export const toInvoiceStatus = ({ status }: { status: string | null }) => INVOICE_STATUSES.get(status ?? '')
const INVOICE_STATUSES = toMap<'paid' | 'open' | 'void'>({
  ...{ paid: 'paid', open: 'open', void: 'void', uncollectible: 'void' },
})

/**
 * Converts an invoice. Its period is that of its line, because the period of the invoice itself may be the one before it was
 * created.
 */
export function toProviderInvoice(invoice: StripeInvoice, paidAt?: number): ProviderInvoice {
  const currency = (invoice.currency ?? 'usd').toUpperCase()
  const lines = invoice.lines?.data ?? []
  const ofSubscription = lines.filter(isOfSubscription)
  const period = (ofSubscription.at(-1) ?? lines.at(-1))?.period
  return {
    externalInvoiceId: invoice.id ?? '',
    amount: fromStripeAmount(invoice.amount_paid || (invoice.amount_due ?? 0), currency),
    currency,
    invoiceUrl: invoice.hosted_invoice_url ?? invoice.invoice_pdf ?? null,
    paidAt: parseTime(invoice.status_transitions?.paid_at) ?? paidAt,
    ...(period ? parsePeriod(period.start, period.end) : parsePeriod(invoice.period_start, invoice.period_end)),
    items: lines.map((line) => toInvoiceItem(line, currency)),
    // Stripe creates no such invoice for a period.
    ...(invoice.billing_reason === 'manual' && { isExtra: true as const }),
  }
}

/** Returns the periods of the lines of a subscription, of which several begin with mixed intervals or prorations. */
export const linePeriodsOf = ({ lines }: StripeInvoice): Period[] =>
  (lines?.data ?? [])
    .filter(isOfSubscription)
    .map(({ period }) => parsePeriod(period?.start, period?.end))
    .filter((period): period is Period => 'periodEnd' in period)

const toInvoiceItem = ({ description, quantity, amount = 0 }: Line, currency: string): InvoiceItem => ({
  ...{ description: description ?? '', quantity: quantity ?? 1, amount: fromStripeAmount(amount, currency) },
})

const isOfSubscription = (line: Line) => !!(line.subscription ?? line.parent?.subscription_item_details?.subscription)

/** Returns the metadata of the subscription of an invoice, which names ours, and Stripe's id of it. */
export function parseSubscriptionRef(invoice: StripeInvoice) {
  const { subscription_details: details } = invoice.parent ?? {}
  const line = invoice.lines?.data?.find(isOfSubscription)
  const external = [invoice.subscription, details?.subscription, line?.subscription]
  return {
    metadata: details?.metadata ?? invoice.subscription_details?.metadata ?? line?.metadata ?? null,
    externalSubscriptionId:
      external.map(idOf).find(Boolean) ?? idOf(line?.parent?.subscription_item_details?.subscription),
  }
}

/** Returns the id of a reference, which Stripe sends as an id or as an expanded object. */
export const idOf = (thing: StripeRef | undefined) => nonEmptyText(typeof thing === 'object' ? thing?.id : thing)
