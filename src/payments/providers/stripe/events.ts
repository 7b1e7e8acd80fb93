import type { EventMeaning } from '../../subscriptions/transitions'
import { nonEmptyText, parseEventBody, parsePeriod, parseTime, requireEventHead } from '../event-parser'
import type { ProviderEvent, ProviderState } from '../provider'
import { idOf, parseSubscriptionRef, type StripeInvoice, toProviderInvoice } from './stripe-invoices'

type Metadata = Record<string, string> | null
type Period = { current_period_start?: number; current_period_end?: number }

/** A subscription of Stripe, in old API versions and new: its period moved to its items with version 2025-03-31. */
export type StripeSubscription = Period & {
  id?: string
  status?: string
  items?: { data?: Period[] }
  trial_end?: number | null
  cancel_at?: number | null
  cancel_at_period_end?: boolean
  metadata?: Metadata
}

type StripeSession = {
  id?: string
  mode?: string
  client_reference_id?: string | null
  metadata?: Metadata
  subscription?: string | { id: string } | null
  payment_link?: string | { id: string } | null
}

type StripeEvent = { id: string; type: string; created: number; data: { object?: unknown } }

/** Parses an event of Stripe. @throws 400 INVALID_INPUT when it is none */
export function parseStripeEvent(raw: Uint8Array): ProviderEvent {
  const { id, type, created, data } = parseEventBody<StripeEvent>(raw)
  const event = requireEventHead(id, type, parseTime(created) ?? Number.NaN)
  const thing = data?.object
  if (typeof thing !== 'object' || thing === null) return event
  const read = Object.hasOwn(READER_BY_EVENT_TYPE, event.type) ? READER_BY_EVENT_TYPE[event.type] : undefined
  return { ...event, ...read?.(thing as never, event.occurredAt) }
}

type EventReader = (thing: never, occurredAt: number) => Partial<ProviderEvent>

/** The reference of a payment link is ignored, because its visitor can set it and pay for something else. */
const sessionReader =
  (meaning: EventMeaning): EventReader =>
  ({ id, client_reference_id, payment_link, metadata, subscription }: StripeSession) => ({
    ...{ meaning, tenant: parseOwnMetadata(metadata).tenant },
    ...{ externalCheckoutId: nonEmptyText(id), externalSubscriptionId: idOf(subscription) },
    subscriptionId:
      parseOwnMetadata(metadata).subscriptionId ?? (payment_link ? undefined : nonEmptyText(client_reference_id)),
  })

const invoiceReader =
  (meaning: EventMeaning): EventReader =>
  (invoice: StripeInvoice, occurredAt) => {
    const { metadata, externalSubscriptionId } = parseSubscriptionRef(invoice)
    const parsed = toProviderInvoice(invoice, meaning === 'paid' ? occurredAt : undefined)
    const { periodStart, periodEnd } = parsed
    return {
      ...{ meaning, ...parseOwnMetadata(metadata), externalSubscriptionId, invoice: parsed },
      ...(meaning === 'paid' && { periodStart, periodEnd }),
    }
  }

/** The status determines the meaning, because a less specific event often follows a more specific one. */
const subscriptionReader =
  (created = false): EventReader =>
  (subscription: StripeSubscription) => {
    const state = toProviderState(subscription)
    const meaningOfStatus = state.status && MEANING_BY_STATUS[state.status]
    return {
      ...state,
      meaning: created && state.status === 'active' ? 'activated' : (meaningOfStatus ?? 'updated'),
      ...parseOwnMetadata(subscription.metadata),
      externalSubscriptionId: nonEmptyText(subscription.id),
    }
  }

const MEANING_BY_STATUS: Partial<Record<NonNullable<ProviderState['status']>, EventMeaning>> = {
  ...{ trialing: 'trial', canceled: 'canceled', expired: 'expired' },
}

const readDeleted: EventReader = (subscription: StripeSubscription) => ({
  ...{ meaning: 'canceled', status: 'canceled', ...parseOwnMetadata(subscription.metadata) },
  externalSubscriptionId: nonEmptyText(subscription.id),
})

/** https://docs.stripe.com/api/events/types */
const READER_BY_EVENT_TYPE: Record<string, EventReader> = {
  'checkout.session.completed': sessionReader('activated'),
  'checkout.session.expired': sessionReader('expired'),
  'customer.subscription.created': subscriptionReader(true),
  'customer.subscription.updated': subscriptionReader(),
  'customer.subscription.paused': subscriptionReader(),
  'customer.subscription.resumed': subscriptionReader(),
  'customer.subscription.trial_will_end': subscriptionReader(),
  'customer.subscription.deleted': readDeleted,
  'invoice.paid': invoiceReader('paid'),
  'invoice.payment_failed': invoiceReader('payment failed'),
  'invoice.voided': invoiceReader('voided'),
  'invoice.marked_uncollectible': invoiceReader('voided'),
}

/** Returns the tenant and the subscription from our metadata. */
const parseOwnMetadata = (metadata: Metadata | undefined) => ({
  tenant: nonEmptyText(metadata?.tenant),
  subscriptionId: nonEmptyText(metadata?.subscription) ?? nonEmptyText(metadata?.subscriptionId),
})

const STATUSES: Record<string, ProviderState['status']> = {
  ...{ active: 'active', trialing: 'trialing', past_due: 'past_due', unpaid: 'past_due', paused: 'past_due' },
  ...{ canceled: 'canceled', incomplete_expired: 'expired' },
}

/** Returns the state of a subscription. It has no status until its first payment. */
export function toProviderState(subscription: StripeSubscription): ProviderState {
  const { status = '', trial_end, cancel_at, cancel_at_period_end } = subscription
  const period = subscription.current_period_end ? subscription : (subscription.items?.data?.[0] ?? {})
  const { current_period_start: start, current_period_end: end } = period
  const ends = !!cancel_at && !!start && !!end && cancel_at > start && cancel_at <= end
  return {
    status: Object.hasOwn(STATUSES, status) ? STATUSES[status] : undefined,
    ...parsePeriod(start, end),
    trialEndsAt: status === 'trialing' ? parseTime(trial_end) : undefined,
    cancelAtPeriodEnd: ends || cancel_at_period_end,
  }
}
