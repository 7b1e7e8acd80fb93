import type { InvoiceItem } from '../../tables'
import type { ProviderInvoice } from '../provider'
import { nonEmptyText, parsePeriod, parseTime } from '../webhook-signature'
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

/** An invoice as Stripe has it, in old versions and new: what it is about moved into `parent` with 2025-03-31. */
export type StripeInvoice = {
  id?: string
  status?: string | null
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

/** Of an invoice that Stripe drew up and that counts; undefined of a draft. */
export const toInvoiceStatus = ({ status }: { status: string | null }) =>
  status ? STATUS_BY_STRIPE_STATUS[status] : undefined
const STATUS_BY_STRIPE_STATUS: Record<string, 'paid' | 'open' | 'void'> = {
  ...{ paid: 'paid', open: 'open', void: 'void', uncollectible: 'void' },
}

/** An invoice in our words. What it is for is the period of its line: its own may be the time before it was drawn up. */
export function toProviderInvoice(invoice: StripeInvoice, paidAt?: number): ProviderInvoice {
  const currency = (invoice.currency ?? 'usd').toUpperCase()
  const lines = invoice.lines?.data ?? []
  const period = (lines.findLast(isOfSubscription) ?? lines.at(-1))?.period
  return {
    externalInvoiceId: invoice.id ?? '',
    amount: fromStripeAmount(invoice.amount_paid || (invoice.amount_due ?? 0), currency),
    currency,
    invoiceUrl: invoice.hosted_invoice_url ?? invoice.invoice_pdf ?? null,
    paidAt: parseTime(invoice.status_transitions?.paid_at) ?? paidAt,
    ...(period ? parsePeriod(period.start, period.end) : parsePeriod(invoice.period_start, invoice.period_end)),
    items: lines.map((line) => toInvoiceItem(line, currency)),
  }
}

const toInvoiceItem = ({ description, quantity, amount = 0 }: Line, currency: string): InvoiceItem => ({
  ...{ description: description ?? '', quantity: quantity ?? 1, amount: fromStripeAmount(amount, currency) },
})

const isOfSubscription = (line: Line) => !!(line.subscription ?? line.parent?.subscription_item_details?.subscription)

/** Of which subscription an invoice is: ours, and Stripe's. */
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

/** What is named or, where Stripe was asked to, told whole. */
export const idOf = (thing: StripeRef | undefined) => nonEmptyText(typeof thing === 'object' ? thing?.id : thing)
