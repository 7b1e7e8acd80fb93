import type { EventMeaning } from '../../subscriptions/transitions'
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
import type { Period, ProviderState } from '../provider'
import { idOf, linePeriodsOf, parseSubscriptionRef, type StripeInvoice, toProviderInvoice } from './stripe-invoices'

type Metadata = Record<string, string> | null
type StripePeriod = { current_period_start?: number; current_period_end?: number }

/** A subscription of Stripe, in old API versions and new: its period moved to its items with version 2025-03-31. */
export type StripeSubscription = StripePeriod & {
  id?: string
  status?: string
  items?: { data?: StripePeriod[] }
  /** Since version 2026-09-30. */
  status_details?: { paused?: { transitioned_at?: number; subscription?: { type?: string } | null } | null } | null
  trial_settings?: { end_behavior?: { missing_payment_method?: string } | null } | null
  pause_collection?: { resumes_at?: number | null } | null
  trial_end?: number | null
  cancel_at?: number | null
  cancel_at_period_end?: boolean
  metadata?: Metadata
}

type StripeSession = {
  id?: string
  mode?: string
  payment_status?: string
  client_reference_id?: string | null
  metadata?: Metadata
  subscription?: string | { id: string } | null
  payment_link?: string | { id: string } | null
}

/** Sessions that sell no subscription have no meaning. One that is not paid yet has only its subscription. */
const readCompleted: EventReader<StripeSession> = (session, occurredAt) => {
  const { mode = 'subscription', payment_status: payment = 'paid' } = session
  if (mode !== 'subscription') return {}
  return sessionReader(payment === 'unpaid' ? 'updated' : 'activated')(session, occurredAt)
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
      ...(meaning === 'paid' && { periodStart, periodEnd, periods: linePeriodsOf(invoice) }),
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
      ...unknownStatus(subscription.status, STATUSES, 'incomplete'),
    }
  }

const MEANING_BY_STATUS: Partial<Record<NonNullable<ProviderState['status']>, EventMeaning>> = {
  ...{ trialing: 'trial', paused: 'paused', canceled: 'canceled', expired: 'expired' },
}

const readDeleted: EventReader<StripeSubscription> = (subscription) => ({
  ...{ meaning: 'canceled', status: 'canceled', ...parseOwnMetadata(subscription.metadata) },
  externalSubscriptionId: nonEmptyText(subscription.id),
})

const STATUSES = toMap<ProviderState['status']>({
  ...{ active: 'active', trialing: 'trialing', past_due: 'past_due', unpaid: 'past_due', paused: 'paused' },
  ...{ canceled: 'canceled', incomplete_expired: 'expired' },
})

/** The statuses of subscriptions that are paused because a payment failed. One without a first payment has none yet. */
const STATUS_BY_FAILURE = toMap<ProviderState['status']>({
  ...{ first_payment_failure: undefined, final_payment_failure: 'past_due' },
})

function statusOf({ status = '', status_details: details }: StripeSubscription): ProviderState['status'] {
  const reason = details?.paused?.subscription?.type ?? ''
  return status === 'paused' && STATUS_BY_FAILURE.has(reason) ? STATUS_BY_FAILURE.get(reason) : STATUSES.get(status)
}

/** Returns the pause of a subscription, or of the collection of its payments, which changes no status. */
function pauseOf(subscription: StripeSubscription): ProviderState['pause'] {
  const { status_details: details, trial_settings: trial, pause_collection: collection } = subscription
  if (statusOf(subscription) !== 'paused')
    return collection ? { reason: 'payment_collection_paused', resumes: parseTime(collection.resumes_at) } : null
  // Before version 2026-09-30 only the end of a trial paused a subscription.
  const pausesAtTrialEnd = trial?.end_behavior?.missing_payment_method === 'pause'
  return {
    since: parseTime(details?.paused?.transitioned_at),
    resumes: parseTime(collection?.resumes_at),
    reason:
      nonEmptyText(details?.paused?.subscription?.type) ??
      (pausesAtTrialEnd ? 'trial_end_without_payment_method' : undefined),
  }
}

/** Returns the periods: of the subscription, or since version 2025-03-31 of its items. */
function periodsOf(subscription: StripeSubscription): Period[] {
  const places = subscription.current_period_end ? [subscription] : (subscription.items?.data ?? [])
  const periods = places.map((place) => parsePeriod(place.current_period_start, place.current_period_end))
  return periods.filter((period): period is Period => 'periodEnd' in period)
}

/** Returns the state of a subscription. It has no status until its first payment. */
export function toProviderState(subscription: StripeSubscription): ProviderState {
  const { status = '', trial_end, cancel_at, cancel_at_period_end } = subscription
  const periods = periodsOf(subscription)
  const cancelAt = parseTime(cancel_at)
  const ends = periods.some(
    ({ periodStart, periodEnd }) => !!cancelAt && cancelAt > periodStart && cancelAt <= periodEnd,
  )
  return {
    status: statusOf(subscription),
    ...periods[0],
    ...(periods.length > 1 && { periods }),
    pause: pauseOf(subscription),
    trialEndsAt: status === 'trialing' ? parseTime(trial_end) : undefined,
    cancelAtPeriodEnd: ends || cancel_at_period_end,
  }
}

type StripeObject = StripeSession & StripeSubscription & StripeInvoice
type StripeEvent = {
  id: string
  object?: string
  type: string
  created: number | string
  api_version?: string | null
  data: { object?: StripeObject | null }
}

const THIN_PAYLOAD =
  'The webhook endpoint at Stripe is set to thin payloads, which say nothing about a subscription. Create an endpoint with the payload style "Snapshot".'

/** The last version without a name, and the names of the later ones. Only versions of another name change what we read. */
const LAST_UNNAMED_VERSION = '2024-06-20'
const VERSION_NAMES = ['acacia', 'basil', 'clover', 'dahlia', 'endive', 'preview']

/** Returns why an API version is unknown, or undefined for a known one. Events need not name theirs. */
function findUnknownVersion(version: string | null | undefined): string | undefined {
  if (version === null || version === undefined) return
  const [date = '', name] = version.split('.')
  const isDate = /^\d{4}-\d\d-\d\d$/.test(date)
  if (isDate && (name === undefined ? date <= LAST_UNNAMED_VERSION : VERSION_NAMES.includes(name))) return
  return `The event has the API version ${version.slice(0, 40)} of Stripe, which this release does not know. Set the webhook endpoint to a version up to "${VERSION_NAMES.at(-2)}", or upgrade Atoll and apply the event again.`
}

/** Parses an event (https://docs.stripe.com/api/events/types). @throws 400 INVALID_INPUT when it is none */
export const parseStripeEvent = createEventParser<StripeEvent, StripeObject>(
  ({ id, object, type, created, api_version, data }) => ({
    ...{ id, type, occurredAt: created, data: data?.object },
    misfit: object === 'v2.core.event' ? THIN_PAYLOAD : undefined,
    unknownVersion: findUnknownVersion(api_version),
  }),
  {
    'checkout.session.completed': readCompleted,
    'checkout.session.async_payment_succeeded': readCompleted,
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
