import type { EventMeaning } from '../../subscriptions/transitions'
import {
  createEventParser,
  type EventReader,
  nonEmptyText,
  parseOwnMetadata,
  parsePeriod,
  parseTime,
  toMap,
} from '../event-parser'
import type { ProviderState } from '../provider'
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

/** The reference of a payment link is ignored, because its visitor can set it and pay for something else. */
const sessionReader =
  (meaning: EventMeaning): EventReader<StripeSession> =>
  ({ id, client_reference_id, payment_link, metadata, subscription }) => ({
    ...{ meaning, tenant: parseOwnMetadata(metadata).tenant },
    ...{ externalCheckoutId: nonEmptyText(id), externalSubscriptionId: idOf(subscription) },
    subscriptionId:
      parseOwnMetadata(metadata).subscriptionId ?? (payment_link ? undefined : nonEmptyText(client_reference_id)),
  })

const invoiceReader =
  (meaning: EventMeaning): EventReader<StripeInvoice> =>
  (invoice, occurredAt) => {
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
  (created = false): EventReader<StripeSubscription> =>
  (subscription) => {
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

const readDeleted: EventReader<StripeSubscription> = (subscription) => ({
  ...{ meaning: 'canceled', status: 'canceled', ...parseOwnMetadata(subscription.metadata) },
  externalSubscriptionId: nonEmptyText(subscription.id),
})

const STATUSES = toMap<ProviderState['status']>({
  ...{ active: 'active', trialing: 'trialing', past_due: 'past_due', unpaid: 'past_due', paused: 'past_due' },
  ...{ canceled: 'canceled', incomplete_expired: 'expired' },
})

/** Returns the state of a subscription. It has no status until its first payment. */
export function toProviderState(subscription: StripeSubscription): ProviderState {
  const { status = '', trial_end, cancel_at, cancel_at_period_end } = subscription
  const period = subscription.current_period_end ? subscription : (subscription.items?.data?.[0] ?? {})
  const { current_period_start: start, current_period_end: end } = period
  const ends = !!cancel_at && !!start && !!end && cancel_at > start && cancel_at <= end
  return {
    status: STATUSES.get(status),
    ...parsePeriod(start, end),
    trialEndsAt: status === 'trialing' ? parseTime(trial_end) : undefined,
    cancelAtPeriodEnd: ends || cancel_at_period_end,
  }
}

type StripeObject = StripeSession & StripeSubscription & StripeInvoice
type StripeEvent = { id: string; type: string; created: number; data: { object?: StripeObject | null } }

/** Parses an event (https://docs.stripe.com/api/events/types). @throws 400 INVALID_INPUT when it is none */
export const parseStripeEvent = createEventParser<StripeEvent, StripeObject>(
  ({ id, type, created, data }) => ({ id, type, occurredAt: created, data: data?.object }),
  {
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
  },
)
