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

/** The state of a subscription. */
export const SubscriptionState = ({ status }: { status: Status }) => {
  const [label, tone] = LABELS[status]
  return <StateTag label={label} tone={tone} />
}

/** Returns whether nothing can happen to a subscription any more. */
export const hasEnded = ({ status }: Pick<Subscription, 'status'>) => status === 'canceled' || status === 'expired'

/** Returns what a subscription costs now in words. */
export function describeSubscriptionPrice({ finalPrice, currency, billingCycle }: Subscription): string {
  if (finalPrice === null) return 'No price yet'
  return finalPrice === 0 ? 'Free' : describeAmount(finalPrice, currency, billingCycle)
}

/** Returns what happens next to a subscription in one sentence. */
export function describeNext(row: Subscription): string {
  const { status, currentPeriodEnd: end, cancelAtPeriodEnd, cancelRequested, trialEndsAt, externalSubscriptionId } = row
  if (hasEnded(row)) return 'Nothing: it has ended.'
  if (cancelRequested) return 'It is cancelled as soon as the provider confirms it.'
  if (status === 'pending')
    return row.basePrice === null
      ? 'It waits for its price, and then for the first payment.'
      : 'It waits for the first payment, and expires a day after the checkout was left.'
  if (cancelAtPeriodEnd && end) return `It ends on ${formatDay(end)} and is not renewed.`
  if (status === 'past_due') return 'A payment is overdue. It is cancelled when the grace period ends without one.'
  if (status === 'trialing' && trialEndsAt)
    return `The trial ends on ${formatDay(trialEndsAt)}, and the first payment follows.`
  if (!externalSubscriptionId) return 'It goes on without payments, because no provider takes part.'
  return end ? `It renews on ${formatDay(end)}.` : 'It goes on.'
}
