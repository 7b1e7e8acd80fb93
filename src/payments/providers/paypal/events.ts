import type { EventMeaning } from '../../subscriptions/transitions'
import { nonEmptyText, parseEventBody, parseTime, requireEventHead } from '../event-parser'
import type { ProviderEvent, ProviderInvoice, ProviderState } from '../provider'
import { fromPaypalAmount, type Money } from './amounts'

/** The fields that we read of a subscription of PayPal. */
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

/** Parses an event of PayPal. @throws 400 INVALID_INPUT when it is none */
export function parsePaypalEvent(raw: Uint8Array): ProviderEvent {
  const { id, event_type, create_time, resource } = parseEventBody<PaypalEvent>(raw)
  const event = requireEventHead(id, event_type, parseTime(create_time) ?? Number.NaN)
  if (typeof resource !== 'object' || resource === null) return event
  const read = Object.hasOwn(READER_BY_EVENT_TYPE, event.type) ? READER_BY_EVENT_TYPE[event.type] : undefined
  return { ...event, ...read?.(resource as never, event.occurredAt) }
}

type EventReader = (resource: never, occurredAt: number) => Partial<ProviderEvent>

const subscriptionReader =
  (meaning: EventMeaning, status?: ProviderState['status']): EventReader =>
  (subscription: PaypalSubscription) => ({
    ...toProviderState(subscription),
    ...(status && { status }),
    ...{ meaning, ...parseSubject(subscription) },
  })

const readPaymentFailed: EventReader = (subscription: PaypalSubscription, occurredAt) => ({
  ...{ meaning: 'payment failed', ...parseSubject(subscription) },
  invoice: toUnpaidInvoice(subscription, occurredAt),
})

const readSale: EventReader = (sale: Sale, occurredAt) => ({
  meaning: 'paid',
  subscriptionId: nonEmptyText(sale.custom) ?? nonEmptyText(sale.custom_id),
  externalSubscriptionId: nonEmptyText(sale.billing_agreement_id),
  ...(nonEmptyText(sale.id) && { invoice: toProviderInvoice(sale, occurredAt) }),
})

/** https://developer.paypal.com/api/rest/webhooks/event-names */
const READER_BY_EVENT_TYPE: Record<string, EventReader> = {
  'BILLING.SUBSCRIPTION.ACTIVATED': subscriptionReader('activated', 'active'),
  'BILLING.SUBSCRIPTION.RE-ACTIVATED': subscriptionReader('activated', 'active'),
  'BILLING.SUBSCRIPTION.UPDATED': subscriptionReader('updated'),
  'BILLING.SUBSCRIPTION.CANCELLED': subscriptionReader('canceled', 'canceled'),
  'BILLING.SUBSCRIPTION.SUSPENDED': subscriptionReader('canceled', 'canceled'),
  'BILLING.SUBSCRIPTION.EXPIRED': subscriptionReader('expired', 'expired'),
  'BILLING.SUBSCRIPTION.PAYMENT.FAILED': readPaymentFailed,
  'PAYMENT.SALE.COMPLETED': readSale,
}

const parseSubject = ({ id, custom_id }: PaypalSubscription) => ({
  ...{ subscriptionId: nonEmptyText(custom_id), externalSubscriptionId: nonEmptyText(id) },
})

const STATUSES: Record<string, ProviderState['status']> = {
  ...{ ACTIVE: 'active', SUSPENDED: 'canceled', CANCELLED: 'canceled', EXPIRED: 'expired' },
}

/** Returns the state of a subscription. It has no status until it is approved. A period begins with a payment. */
export function toProviderState({ status = '', start_time, billing_info }: PaypalSubscription): ProviderState {
  const periodEnd = parseTime(billing_info?.next_billing_time)
  const periodStart = parseTime(billing_info?.last_payment?.time) ?? parseTime(start_time)
  // PayPal keeps an overdue subscription ACTIVE.
  const isLate = status === 'ACTIVE' && !!billing_info?.failed_payments_count
  const known = Object.hasOwn(STATUSES, status) ? STATUSES[status] : undefined
  return { status: isLate ? 'past_due' : known, ...(periodEnd && { periodStart, periodEnd }) }
}

/** PayPal has other names for the amounts of sales than elsewhere. */
function toProviderInvoice({ id, amount = {}, create_time }: Sale, occurredAt: number): ProviderInvoice {
  const currency = (amount.currency ?? amount.currency_code ?? 'USD').toUpperCase()
  return {
    externalInvoiceId: id!,
    amount: fromPaypalAmount(amount.total ?? amount.value, currency),
    currency,
    paidAt: parseTime(create_time) ?? occurredAt,
  }
}

/** An unpaid invoice has no id at PayPal. Its id is made of the cycle, so that all attempts of a cycle share it. */
function toUnpaidInvoice({ id, billing_info }: PaypalSubscription, occurredAt: number): ProviderInvoice | undefined {
  const owed = billing_info?.last_failed_payment?.amount ?? billing_info?.outstanding_balance
  if (!id || !owed) return
  const regular = billing_info?.cycle_executions?.find(({ tenure_type }) => tenure_type === 'REGULAR')
  const cycle = regular ? regular.cycles_completed + 1 : new Date(occurredAt).toISOString().slice(0, 10)
  const currency = owed.currency_code.toUpperCase()
  return { externalInvoiceId: `${id}-${cycle}`, amount: fromPaypalAmount(owed.value, currency), currency }
}
