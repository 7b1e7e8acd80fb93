import type { InvoiceItem } from '../../tables'
import type { Meaning, ProviderEvent, ProviderInvoice, Standing } from '../provider'
import { eventIn, headOf, moment, named, spanOf } from '../signed'

type Period = { starts_at?: string; ends_at?: string } | null
type CustomData = Record<string, unknown> | null

/** A subscription as Paddle has it, as far as we read it. */
export type PaddleSubscription = {
  id?: string
  status?: string
  currency_code?: string
  custom_data?: CustomData
  /** By which it was bought; only in the event of its beginning. */
  transaction_id?: string
  current_billing_period?: Period
  scheduled_change?: { action?: string } | null
  items?: {
    quantity?: number
    trial_dates?: Period
    price?: { id?: string; product_id?: string; description?: string; unit_price?: { amount?: string } } | null
  }[]
}

type LineItem = { quantity?: number; totals?: { total?: string } | null; product?: { name?: string } | null }

export type PaddleTransaction = {
  id?: string
  status?: string
  subscription_id?: string | null
  currency_code?: string
  custom_data?: CustomData
  billing_period?: Period
  billed_at?: string | null
  payments?: { status?: string; captured_at?: string | null }[]
  details?: { totals?: { grand_total?: string; total?: string } | null; line_items?: LineItem[] } | null
}

type PaddleEvent = { event_id: string; event_type: string; occurred_at: string; data: unknown }

/** What an event of Paddle's says. */
export function eventOf(raw: Uint8Array): ProviderEvent {
  const { event_id, event_type, occurred_at, data } = eventIn<PaddleEvent>(raw)
  const event = headOf(event_id, event_type, moment(occurred_at) ?? Number.NaN)
  if (typeof data !== 'object' || data === null) return event
  const read = Object.hasOwn(EVENTS, event.type) ? EVENTS[event.type] : undefined
  return { ...event, ...read?.(data as never, event.occurredAt) }
}

type Read = (data: never, occurredAt: number) => Partial<ProviderEvent>

const ofSubscription =
  (meaning?: Meaning, status?: Standing['status']): Read =>
  (subscription: PaddleSubscription) => {
    const standing = standingOf(subscription)
    return {
      ...standing,
      ...(status && { status }),
      meaning: meaning ?? (standing.status && MEANINGS[standing.status]) ?? 'updated',
      ...ours(subscription.custom_data),
      externalSubscriptionId: named(subscription.id),
      externalCheckoutId: named(subscription.transaction_id),
    }
  }

const created: Read = (subscription: PaddleSubscription) =>
  ofSubscription(subscription.status === 'active' ? 'activated' : undefined)(subscription as never, 0)

const MEANINGS: Partial<Record<NonNullable<Standing['status']>, Meaning>> = {
  ...{ trialing: 'trial', canceled: 'canceled' },
}

const ofTransaction =
  (meaning: Meaning): Read =>
  (transaction: PaddleTransaction, occurredAt) => {
    const told = invoiceOf(transaction, meaning === 'paid' ? occurredAt : undefined)
    const { periodStart, periodEnd } = told
    return {
      ...{ meaning, ...ours(transaction.custom_data), invoice: told },
      externalSubscriptionId: named(transaction.subscription_id),
      externalCheckoutId: named(transaction.id),
      ...(meaning === 'paid' && { periodStart, periodEnd }),
    }
  }

/** https://developer.paddle.com/webhooks/overview */
const EVENTS: Record<string, Read> = {
  'subscription.created': created,
  'subscription.activated': ofSubscription('activated', 'active'),
  'subscription.trialing': ofSubscription('trial', 'trialing'),
  'subscription.updated': ofSubscription(),
  'subscription.resumed': ofSubscription(),
  'subscription.past_due': ofSubscription('payment failed', 'past_due'),
  'subscription.canceled': ofSubscription('canceled', 'canceled'),
  'subscription.paused': ofSubscription('canceled', 'canceled'),
  'transaction.completed': ofTransaction('paid'),
  'transaction.payment_failed': ofTransaction('payment failed'),
}

/** What we have told Paddle of it. */
const ours = (data: CustomData | undefined) => ({
  ...{ tenant: named(data?.tenant), subscriptionId: named(data?.subscription) ?? named(data?.subscriptionId) },
})

const STATUSES: Record<string, Standing['status']> = {
  ...{ active: 'active', trialing: 'trialing', past_due: 'past_due', canceled: 'canceled', paused: 'canceled' },
}

export function standingOf(subscription: PaddleSubscription): Standing {
  const { status = '', current_billing_period: period, scheduled_change, items } = subscription
  return {
    status: STATUSES[status],
    ...spanOf(period?.starts_at, period?.ends_at),
    trialEndsAt: status === 'trialing' ? moment(items?.[0]?.trial_dates?.ends_at ?? period?.ends_at) : undefined,
    cancelAtPeriodEnd: scheduled_change?.action === 'cancel',
  }
}

/** A transaction is what others call an invoice: paid or not, it keeps its id. Paddle counts in minor units, as texts. */
export function invoiceOf(transaction: PaddleTransaction, occurredAt?: number): ProviderInvoice {
  const { id, currency_code = 'USD', billing_period, details, payments, billed_at } = transaction
  const captured = payments?.find(({ status }) => status === 'captured')?.captured_at
  return {
    externalInvoiceId: id ?? '',
    amount: counted(details?.totals?.grand_total ?? details?.totals?.total),
    currency: currency_code.toUpperCase(),
    invoiceUrl: null,
    paidAt: occurredAt === undefined ? undefined : (moment(captured) ?? moment(billed_at) ?? occurredAt),
    ...spanOf(billing_period?.starts_at, billing_period?.ends_at),
    items: (details?.line_items ?? []).map(itemOf),
  }
}

const itemOf = ({ quantity = 1, totals, product }: LineItem): InvoiceItem => ({
  ...{ description: product?.name ?? '', quantity, amount: counted(totals?.total) },
})

const counted = (text: string | undefined) => (/^-?\d{1,15}$/.test(text ?? '') ? Number(text) : 0)
