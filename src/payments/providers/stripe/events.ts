import type { Meaning, ProviderEvent, Standing } from '../provider'
import { eventIn, headOf, moment, named, spanOf } from '../signed'
import { idOf, invoiceOf, type StripeInvoice, subscriptionOf } from './invoices'

type Metadata = Record<string, string> | null
type Period = { current_period_start?: number; current_period_end?: number }

/** A subscription as Stripe has it, in old versions and new: its period moved to its items with 2025-03-31. */
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

/** What an event of Stripe's says. */
export function eventOf(raw: Uint8Array): ProviderEvent {
  const { id, type, created, data } = eventIn<StripeEvent>(raw)
  const event = headOf(id, type, Number(created) * 1000)
  const thing = data?.object
  if (typeof thing !== 'object' || thing === null) return event
  const read = Object.hasOwn(EVENTS, event.type) ? EVENTS[event.type] : undefined
  return { ...event, ...read?.(thing as never, event.occurredAt) }
}

type Read = (thing: never, occurredAt: number) => Partial<ProviderEvent>

/** Whoever opens a payment link says its reference: what they pay for there may be something else. */
const ofSession =
  (meaning: Meaning): Read =>
  ({ id, client_reference_id, payment_link, metadata, subscription }: StripeSession) => ({
    ...{ meaning, tenant: ours(metadata).tenant },
    ...{ externalCheckoutId: named(id), externalSubscriptionId: idOf(subscription) },
    subscriptionId: ours(metadata).subscriptionId ?? (payment_link ? undefined : named(client_reference_id)),
  })

const ofInvoice =
  (meaning: Meaning): Read =>
  (invoice: StripeInvoice, occurredAt) => {
    const { metadata, externalSubscriptionId } = subscriptionOf(invoice)
    const told = invoiceOf(invoice, meaning === 'paid' ? occurredAt : undefined)
    const { periodStart, periodEnd } = told
    return {
      ...{ meaning, ...ours(metadata), externalSubscriptionId, invoice: told },
      ...(meaning === 'paid' && { periodStart, periodEnd }),
    }
  }

/** What it means follows from the status: an event that says less than that comes soon after one that says it. */
const ofSubscription =
  (created = false): Read =>
  (subscription: StripeSubscription) => {
    const standing = standingOf(subscription)
    const meant = standing.status && MEANINGS[standing.status]
    return {
      ...standing,
      meaning: created && standing.status === 'active' ? 'activated' : (meant ?? 'updated'),
      ...ours(subscription.metadata),
      externalSubscriptionId: named(subscription.id),
    }
  }

const MEANINGS: Partial<Record<NonNullable<Standing['status']>, Meaning>> = {
  ...{ trialing: 'trial', canceled: 'canceled', expired: 'expired' },
}

const ended: Read = (subscription: StripeSubscription) => ({
  ...{ meaning: 'canceled', status: 'canceled', ...ours(subscription.metadata) },
  externalSubscriptionId: named(subscription.id),
})

/** https://docs.stripe.com/api/events/types */
const EVENTS: Record<string, Read> = {
  'checkout.session.completed': ofSession('activated'),
  'checkout.session.expired': ofSession('expired'),
  'customer.subscription.created': ofSubscription(true),
  'customer.subscription.updated': ofSubscription(),
  'customer.subscription.paused': ofSubscription(),
  'customer.subscription.resumed': ofSubscription(),
  'customer.subscription.trial_will_end': ofSubscription(),
  'customer.subscription.deleted': ended,
  'invoice.paid': ofInvoice('paid'),
  'invoice.payment_failed': ofInvoice('payment failed'),
  'invoice.voided': ofInvoice('voided'),
  'invoice.marked_uncollectible': ofInvoice('voided'),
}

/** What we have told Stripe of it. */
const ours = (metadata: Metadata | undefined) => ({
  tenant: named(metadata?.tenant),
  subscriptionId: named(metadata?.subscription) ?? named(metadata?.subscriptionId),
})

const STATUSES: Record<string, Standing['status']> = {
  ...{ active: 'active', trialing: 'trialing', past_due: 'past_due', unpaid: 'past_due', paused: 'past_due' },
  ...{ canceled: 'canceled', incomplete_expired: 'expired' },
}

/** Where a subscription stands. One whose first payment is not made yet has no status. */
export function standingOf(subscription: StripeSubscription): Standing {
  const { status = '', trial_end, cancel_at, cancel_at_period_end } = subscription
  const period = subscription.current_period_end ? subscription : (subscription.items?.data?.[0] ?? {})
  const { current_period_start: start, current_period_end: end } = period
  const ends = !!cancel_at && !!start && !!end && cancel_at > start && cancel_at <= end
  return {
    status: STATUSES[status],
    ...spanOf(start, end),
    trialEndsAt: status === 'trialing' ? moment(trial_end) : undefined,
    cancelAtPeriodEnd: ends || cancel_at_period_end,
  }
}
