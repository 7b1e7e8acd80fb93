import type { EventMeaning } from '../../subscriptions/transitions'
import { createEventParser, type EventReader, nonEmptyText, parseTime, toMap, unknownStatus } from '../event-parser'
import type { ProviderInvoice, ProviderState } from '../provider'
import { fromPaypalAmount, type Money } from './amounts'
import { dayOf, placeholderId } from './placeholder-invoices'

/** The fields that we read of a subscription of PayPal. */
export type PaypalSubscription = {
  id?: string
  plan_id?: string
  custom_id?: string
  status?: string
  start_time?: string
  status_update_time?: string
  billing_info?: {
    outstanding_balance?: Money
    failed_payments_count?: number
    cycle_executions?: { tenure_type: string; sequence: number; cycles_completed: number }[]
    last_payment?: { amount: Money; time: string }
    last_failed_payment?: { amount: Money; time: string; next_payment_retry_time?: string }
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

const subscriptionReader =
  (meaning: EventMeaning, status?: ProviderState['status']): EventReader<PaypalSubscription> =>
  (subscription) => ({
    ...toProviderState(subscription),
    ...(status && { status }),
    ...{ meaning, ...parseSubject(subscription) },
    ...unknownStatus(subscription.status, STATUSES, 'APPROVAL_PENDING', 'APPROVED'),
  })

const readActivated: EventReader<PaypalSubscription> = (subscription, occurredAt) => {
  const isTrial = toProviderState(subscription).status === 'trialing'
  return subscriptionReader(isTrial ? 'trial' : 'activated', isTrial ? 'trialing' : 'active')(subscription, occurredAt)
}

const readPaymentFailed: EventReader<PaypalSubscription> = (subscription, occurredAt) => ({
  ...{ meaning: 'payment failed', ...parseSubject(subscription) },
  invoice: toUnpaidInvoice(subscription, occurredAt),
})

const readSale: EventReader<Sale> = (sale, occurredAt) => ({
  meaning: 'paid',
  subscriptionId: nonEmptyText(sale.custom) ?? nonEmptyText(sale.custom_id),
  externalSubscriptionId: nonEmptyText(sale.billing_agreement_id),
  ...(nonEmptyText(sale.id) && { invoice: toProviderInvoice(sale, occurredAt) }),
})

const parseSubject = ({ id, custom_id }: PaypalSubscription) => ({
  ...{ subscriptionId: nonEmptyText(custom_id), externalSubscriptionId: nonEmptyText(id) },
})

const STATUSES = toMap<ProviderState['status']>({
  ...{ ACTIVE: 'active', SUSPENDED: 'paused', CANCELLED: 'canceled', EXPIRED: 'expired' },
})

/** Returns the state of a subscription. It has no status until it is approved. A period begins with a payment. */
export function toProviderState({ status = '', start_time, billing_info, ...more }: PaypalSubscription): ProviderState {
  const periodEnd = parseTime(billing_info?.next_billing_time)
  const periodStart = parseTime(billing_info?.last_payment?.time) ?? parseTime(start_time)
  const known = status === 'ACTIVE' ? statusOfActive(billing_info) : STATUSES.get(status)
  return {
    status: known,
    // The time of the next payment may be older than the last one.
    ...(periodEnd && { periodEnd, ...(periodStart && periodStart < periodEnd && { periodStart }) }),
    trialEndsAt: known === 'trialing' ? periodEnd : undefined,
    pause: status === 'SUSPENDED' ? { since: parseTime(more.status_update_time) } : status ? null : undefined,
  }
}

/** PayPal keeps a subscription ACTIVE that is overdue, or in a trial that costs nothing. */
function statusOfActive(info: PaypalSubscription['billing_info']): ProviderState['status'] {
  if (info?.failed_payments_count) return 'past_due'
  const cycles = info?.cycle_executions ?? []
  const hasTrial = cycles.some(({ tenure_type }) => tenure_type === 'TRIAL')
  const isBilled = cycles.some(({ tenure_type, cycles_completed }) => tenure_type === 'REGULAR' && cycles_completed > 0)
  return hasTrial && !isBilled && !info?.last_payment ? 'trialing' : 'active'
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

/** Returns the placeholder of an unpaid invoice, whose id all attempts of a cycle share. */
function toUnpaidInvoice({ id, billing_info }: PaypalSubscription, occurredAt: number): ProviderInvoice | undefined {
  const owed = billing_info?.last_failed_payment?.amount ?? billing_info?.outstanding_balance
  if (!id || !owed) return
  const regular = billing_info?.cycle_executions?.find(({ tenure_type }) => tenure_type === 'REGULAR')
  const cycle = regular ? regular.cycles_completed + 1 : dayOf(occurredAt)
  const currency = owed.currency_code.toUpperCase()
  return { externalInvoiceId: placeholderId(id, cycle), amount: fromPaypalAmount(owed.value, currency), currency }
}

type PaypalEvent = {
  id: string
  event_type: string
  create_time: string
  event_version?: string
  resource_version?: string
  resource: (PaypalSubscription & Sale) | null
}

/** Returns why the version of an event is unknown, or undefined for a known one. */
function findUnknownVersion({
  event_version: event = '1.0',
  resource_version: resource = '2.0',
}: Partial<PaypalEvent>) {
  if (event === '1.0' && ['1.0', '2.0'].includes(resource)) return
  const versions = `${event} with a resource of version ${resource}`.slice(0, 80)
  return `The event has the version ${versions}, which this release does not know. Upgrade Atoll, and apply the event again.`
}

/** Parses an event (https://developer.paypal.com/api/rest/webhooks/event-names). @throws 400 INVALID_INPUT when it is none */
export const parsePaypalEvent = createEventParser<PaypalEvent, PaypalSubscription & Sale>(
  ({ id, event_type: type, create_time: occurredAt, resource: data, ...versions }) => ({
    ...{ id, type, occurredAt, data },
    unknownVersion: findUnknownVersion(versions),
  }),
  {
    'BILLING.SUBSCRIPTION.ACTIVATED': readActivated,
    'BILLING.SUBSCRIPTION.RE-ACTIVATED': readActivated,
    'BILLING.SUBSCRIPTION.UPDATED': subscriptionReader('updated'),
    'BILLING.SUBSCRIPTION.CANCELLED': subscriptionReader('canceled', 'canceled'),
    'BILLING.SUBSCRIPTION.SUSPENDED': subscriptionReader('paused', 'paused'),
    'BILLING.SUBSCRIPTION.EXPIRED': subscriptionReader('expired', 'expired'),
    'BILLING.SUBSCRIPTION.PAYMENT.FAILED': readPaymentFailed,
    'PAYMENT.SALE.COMPLETED': readSale,
  },
)
