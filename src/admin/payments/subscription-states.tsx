import type { Subscription } from '../api/schema'
import { StateTag } from '../ui/state-tag'
import { describeAmount, formatDay } from './price-words'

type Status = Subscription['status']

const LABELS: Record<Status, [label: string, tone: 'good' | 'warning' | 'bad' | 'neutral']> = {
  pending: ['Pending', 'warning'],
  active: ['Active', 'good'],
  trialing: ['Trial', 'good'],
  past_due: ['Overdue', 'bad'],
  canceled: ['Cancelled', 'neutral'],
  expired: ['Expired', 'neutral'],
}

/** The states with their words, for filters. */
export const STATUS_OPTIONS = Object.entries(LABELS).map(([value, [label]]) => ({ value, label }))

/** The state of a subscription: paused while its provider pauses it, and in conflict while it is paid beside another one. */
export const SubscriptionState = ({ status, pause, conflict }: Pick<Subscription, 'status' | 'pause' | 'conflict'>) => {
  const [label, tone] = LABELS[status]
  return (
    <>
      <StateTag {...(pause && status === 'expired' ? { label: 'Paused', tone: 'warning' } : { label, tone })} />
      {pause && status !== 'expired' && <StateTag label="Payments paused" tone="warning" />}
      {conflict && <StateTag label="Paid twice" tone="bad" />}
    </>
  )
}

/** Returns whether nothing can happen to a subscription any more. */
export const hasEnded = ({ status, pause, conflict }: Pick<Subscription, 'status' | 'pause' | 'conflict'>) =>
  (status === 'canceled' || status === 'expired') && !pause && !conflict

const PAUSE_REASONS: Record<string, string> = {
  pause_requested: 'Paused at the provider',
  trial_end_without_payment_method: 'Its trial ended without a payment method',
  payment_collection_paused: 'The provider collects no payments for it',
  final_payment_failure: 'The provider gave up collecting a payment',
}

/** Returns why and until when a subscription is paused. */
function describePause({ reason, resumes }: NonNullable<Subscription['pause']>, status: Status): string {
  const why = PAUSE_REASONS[reason] ?? `The provider paused it (${reason})`
  const until = resumes
    ? `it resumes on ${formatDay(resumes)}`
    : status === 'expired'
      ? 'it continues when it is resumed there or paid'
      : 'until that is resumed there'
  return `${why}; ${until}.`
}

/** Returns what a subscription costs now in words. */
export function describeSubscriptionPrice({ finalPrice, currency, billingCycle }: Subscription): string {
  if (finalPrice === null) return 'No price yet'
  return finalPrice === 0 ? 'Free' : describeAmount(finalPrice, currency, billingCycle)
}

/** Returns what happens next to a subscription in one sentence. */
export function describeNext(row: Subscription): string {
  const { status, currentPeriodEnd: end, cancelAtPeriodEnd, cancelRequested, trialEndsAt, externalSubscriptionId } = row
  if (row.conflict)
    return 'It is paid, but its customer has another subscription in force. Cancel one of the two, and refund it.'
  if (hasEnded(row)) return 'Nothing: it has ended.'
  if (cancelRequested) return 'It is cancelled as soon as the provider confirms it.'
  if (row.pause) return describePause(row.pause, status)
  if (status === 'pending')
    return row.basePrice === null
      ? 'It waits for its price, and then for the first payment.'
      : 'It waits for the first payment, and expires a day after the checkout was left.'
  if (cancelAtPeriodEnd && end) return `It ends on ${formatDay(end)} and is not renewed.`
  if (status === 'past_due')
    return 'A payment is overdue. Access ends with the grace period, and a later payment brings it back.'
  if (status === 'trialing' && trialEndsAt)
    return `The trial ends on ${formatDay(trialEndsAt)}, and the first payment follows.`
  if (!externalSubscriptionId) return 'It continues without payments, because it has no provider.'
  return end ? `It renews on ${formatDay(end)}.` : 'It goes on.'
}
