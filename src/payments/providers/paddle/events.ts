import type { EventMeaning } from '../../subscriptions/transitions'
import type { InvoiceItem } from '../../tables'
import {
  createEventParser,
  type EventReader,
  nonEmptyText,
  parseOwnMetadata,
  parsePeriod,
  parseTime,
  toMap,
  unknownStatus,
} from '../event-parser'
import type { ProviderInvoice, ProviderState } from '../provider'

type Period = { starts_at?: string; ends_at?: string } | null
type CustomData = Record<string, unknown> | null

type PaddlePrice = {
  product_id?: string
  description?: string
  unit_price?: { amount?: string }
  billing_cycle?: { interval?: string; frequency?: number } | null
}

/** The fields that we read of a subscription of Paddle. */
export type PaddleSubscription = {
  id?: string
  status?: string
  currency_code?: string
  custom_data?: CustomData
  /** The transaction that it was bought with; only in the event of its creation. */
  transaction_id?: string
  current_billing_period?: Period
  scheduled_change?: { action?: string; effective_at?: string | null } | null
  paused_at?: string | null
  items?: { trial_dates?: Period; price?: PaddlePrice | null }[]
}

type LineItem = { quantity?: number; totals?: { total?: string } | null; product?: { name?: string } | null }

export type PaddleTransaction = {
  id?: string
  status?: string
  origin?: string
  subscription_id?: string | null
  currency_code?: string
  custom_data?: CustomData
  billing_period?: Period
  billed_at?: string | null
  payments?: { status?: string; captured_at?: string | null }[]
  details?: { totals?: { grand_total?: string; total?: string } | null; line_items?: LineItem[] } | null
}

const subscriptionReader =
  (meaning?: EventMeaning, status?: ProviderState['status']) => (subscription: PaddleSubscription) => {
    const state = toProviderState(subscription)
    return {
      ...state,
      ...(status && { status }),
      meaning: meaning ?? (state.status && MEANING_BY_STATUS[state.status]) ?? 'updated',
      ...parseOwnMetadata(subscription.custom_data),
      externalSubscriptionId: nonEmptyText(subscription.id),
      externalCheckoutId: nonEmptyText(subscription.transaction_id),
      ...unknownStatus(subscription.status, STATUSES),
    }
  }

const readCreated: EventReader<PaddleSubscription> = (subscription) =>
  subscriptionReader(subscription.status === 'active' ? 'activated' : undefined)(subscription)

const MEANING_BY_STATUS: Partial<Record<NonNullable<ProviderState['status']>, EventMeaning>> = {
  ...{ trialing: 'trial', paused: 'paused', canceled: 'canceled' },
}

const transactionReader =
  (meaning: EventMeaning): EventReader<PaddleTransaction> =>
  (transaction, occurredAt) => {
    const invoice = toProviderInvoice(transaction, meaning === 'paid' ? occurredAt : undefined)
    const { periodStart, periodEnd } = invoice
    return {
      ...{ meaning, ...parseOwnMetadata(transaction.custom_data), invoice },
      externalSubscriptionId: nonEmptyText(transaction.subscription_id),
      externalCheckoutId: nonEmptyText(transaction.id),
      ...(meaning === 'paid' && { periodStart, periodEnd }),
    }
  }

/** A checkout that was left has no invoice, unless a payment of it was tried. */
const readCanceled: EventReader<PaddleTransaction> = (transaction, occurredAt) =>
  transaction.payments?.length ? transactionReader('voided')(transaction, occurredAt) : {}

const STATUSES = toMap<ProviderState['status']>({
  ...{ active: 'active', trialing: 'trialing', past_due: 'past_due', canceled: 'canceled', paused: 'paused' },
})

export function toProviderState(subscription: PaddleSubscription): ProviderState {
  const { status = '', current_billing_period: period, scheduled_change, items } = subscription
  return {
    status: STATUSES.get(status),
    ...parsePeriod(period?.starts_at, period?.ends_at),
    trialEndsAt: status === 'trialing' ? parseTime(items?.[0]?.trial_dates?.ends_at ?? period?.ends_at) : undefined,
    cancelAtPeriodEnd: scheduled_change?.action === 'cancel',
    pause: status === 'paused' ? pauseOf(subscription) : null,
  }
}

const pauseOf = ({ paused_at, scheduled_change: change }: PaddleSubscription) => ({
  since: parseTime(paused_at),
  resumes: change?.action === 'resume' ? parseTime(change.effective_at) : undefined,
})

/** Converts a transaction, which is Paddle's invoice and keeps its id. Paddle's amounts are minor units, as text. */
export function toProviderInvoice(transaction: PaddleTransaction, occurredAt?: number): ProviderInvoice {
  const { id, origin = '', currency_code = 'USD', billing_period, details, payments, billed_at } = transaction
  const captured = payments?.find(({ status }) => status === 'captured')?.captured_at
  return {
    externalInvoiceId: id ?? '',
    amount: parseMinorAmount(details?.totals?.grand_total ?? details?.totals?.total),
    currency: currency_code.toUpperCase(),
    invoiceUrl: null,
    paidAt: occurredAt === undefined ? undefined : (parseTime(captured) ?? parseTime(billed_at) ?? occurredAt),
    ...parsePeriod(billing_period?.starts_at, billing_period?.ends_at),
    items: (details?.line_items ?? []).map(toInvoiceItem),
    ...(EXTRA_ORIGINS.has(origin) && { isExtra: true as const }),
  }
}

/** The origins of transactions that pay for no period: a single charge, and one of zero that stores a payment method. */
const EXTRA_ORIGINS = new Set(['subscription_charge', 'subscription_payment_method_change'])

const toInvoiceItem = ({ quantity = 1, totals, product }: LineItem): InvoiceItem => ({
  ...{ description: product?.name ?? '', quantity, amount: parseMinorAmount(totals?.total) },
})

const parseMinorAmount = (text: string | undefined) => (/^-?\d{1,15}$/.test(text ?? '') ? Number(text) : 0)

type PaddleObject = PaddleSubscription & PaddleTransaction
type PaddleEvent = { event_id: string; event_type: string; occurred_at: string; data: PaddleObject | null }

/** Parses an event (https://developer.paddle.com/webhooks/overview). @throws 400 INVALID_INPUT when it is none */
export const parsePaddleEvent = createEventParser<PaddleEvent, PaddleObject>(
  ({ event_id: id, event_type: type, occurred_at: occurredAt, data }) => ({ id, type, occurredAt, data }),
  {
    'subscription.created': readCreated,
    'subscription.activated': subscriptionReader('activated', 'active'),
    'subscription.trialing': subscriptionReader('trial', 'trialing'),
    'subscription.updated': subscriptionReader(),
    'subscription.resumed': subscriptionReader(),
    'subscription.past_due': subscriptionReader('payment failed', 'past_due'),
    'subscription.canceled': subscriptionReader('canceled', 'canceled'),
    'subscription.paused': subscriptionReader('paused', 'paused'),
    'transaction.completed': transactionReader('paid'),
    'transaction.payment_failed': transactionReader('payment failed'),
    'transaction.past_due': transactionReader('payment failed'),
    'transaction.canceled': readCanceled,
  },
)
