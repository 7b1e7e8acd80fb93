import type { Meaning, ProviderEvent, ProviderInvoice, Standing } from '../provider'
import { eventIn, headOf, moment, named } from '../signed'
import { fromPaypal, type Money } from './amounts'

/** A subscription as PayPal has it, as far as we read it. */
export type PaypalSubscription = {
  id?: string
  plan_id?: string
  custom_id?: string
  status?: string
  start_time?: string
  billing_info?: {
    outstanding_balance?: Money
    failed_payments_count?: number
    cycle_executions?: { tenure_type: string; sequence: number; cycles_completed: number }[]
    last_payment?: { amount: Money; time: string }
    last_failed_payment?: { amount: Money; time: string }
    next_billing_time?: string
  }
}

type Sale = {
  id?: string
  billing_agreement_id?: string
  custom?: string
  custom_id?: string
  amount?: { total?: string; currency?: string; value?: string; currency_code?: string }
  create_time?: string
}

type PaypalEvent = { id: string; event_type: string; create_time: string; resource: unknown }

/** What an event of PayPal's says. */
export function eventOf(raw: Uint8Array): ProviderEvent {
  const { id, event_type, create_time, resource } = eventIn<PaypalEvent>(raw)
  const event = headOf(id, event_type, moment(create_time) ?? Number.NaN)
  if (typeof resource !== 'object' || resource === null) return event
  const read = Object.hasOwn(EVENTS, event.type) ? EVENTS[event.type] : undefined
  return { ...event, ...read?.(resource as never, event.occurredAt) }
}

type Read = (resource: never, occurredAt: number) => Partial<ProviderEvent>

const ofSubscription =
  (meaning: Meaning, status?: Standing['status']): Read =>
  (subscription: PaypalSubscription) => ({
    ...standingOf(subscription),
    ...(status && { status }),
    ...{ meaning, ...subjectOf(subscription) },
  })

const failed: Read = (subscription: PaypalSubscription, occurredAt) => ({
  ...{ meaning: 'payment failed', ...subjectOf(subscription) },
  invoice: unpaidOf(subscription, occurredAt),
})

const paid: Read = (sale: Sale, occurredAt) => ({
  meaning: 'paid',
  subscriptionId: named(sale.custom) ?? named(sale.custom_id),
  externalSubscriptionId: named(sale.billing_agreement_id),
  ...(named(sale.id) && { invoice: invoiceOf(sale, occurredAt) }),
})

/** https://developer.paypal.com/api/rest/webhooks/event-names */
const EVENTS: Record<string, Read> = {
  'BILLING.SUBSCRIPTION.ACTIVATED': ofSubscription('activated', 'active'),
  'BILLING.SUBSCRIPTION.RE-ACTIVATED': ofSubscription('activated', 'active'),
  'BILLING.SUBSCRIPTION.UPDATED': ofSubscription('updated'),
  'BILLING.SUBSCRIPTION.CANCELLED': ofSubscription('canceled', 'canceled'),
  'BILLING.SUBSCRIPTION.SUSPENDED': ofSubscription('canceled', 'canceled'),
  'BILLING.SUBSCRIPTION.EXPIRED': ofSubscription('expired', 'expired'),
  'BILLING.SUBSCRIPTION.PAYMENT.FAILED': failed,
  'PAYMENT.SALE.COMPLETED': paid,
}

const subjectOf = ({ id, custom_id }: PaypalSubscription) => ({
  ...{ subscriptionId: named(custom_id), externalSubscriptionId: named(id) },
})

const STATUSES: Record<string, Standing['status']> = {
  ...{ ACTIVE: 'active', SUSPENDED: 'canceled', CANCELLED: 'canceled', EXPIRED: 'expired' },
}

/** Where a subscription stands. One that was not approved yet has no status; a period begins with a payment. */
export function standingOf({ status = '', start_time, billing_info }: PaypalSubscription): Standing {
  const periodEnd = moment(billing_info?.next_billing_time)
  const periodStart = moment(billing_info?.last_payment?.time) ?? moment(start_time)
  // Who is late to pay is ACTIVE there.
  const isLate = status === 'ACTIVE' && !!billing_info?.failed_payments_count
  return { status: isLate ? 'past_due' : STATUSES[status], ...(periodEnd && { periodStart, periodEnd }) }
}

/** PayPal calls amounts of sales otherwise than all others. */
function invoiceOf({ id, amount = {}, create_time }: Sale, occurredAt: number): ProviderInvoice {
  const currency = (amount.currency ?? amount.currency_code ?? 'USD').toUpperCase()
  return {
    externalInvoiceId: id!,
    amount: fromPaypal(amount.total ?? amount.value, currency),
    currency,
    paidAt: moment(create_time) ?? occurredAt,
  }
}

/** What was not paid has no name at PayPal: it is that of the cycle, so each further attempt is about the same. */
function unpaidOf({ id, billing_info }: PaypalSubscription, occurredAt: number): ProviderInvoice | undefined {
  const owed = billing_info?.last_failed_payment?.amount ?? billing_info?.outstanding_balance
  if (!id || !owed) return
  const regular = billing_info?.cycle_executions?.find(({ tenure_type }) => tenure_type === 'REGULAR')
  const cycle = regular ? regular.cycles_completed + 1 : new Date(occurredAt).toISOString().slice(0, 10)
  const currency = owed.currency_code.toUpperCase()
  return { externalInvoiceId: `${id}-${cycle}`, amount: fromPaypal(owed.value, currency), currency }
}
