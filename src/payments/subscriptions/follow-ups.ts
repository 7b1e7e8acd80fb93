import type { Subscription } from '../tables'
import type { Effect } from './effects'
import { isLinked, nextCheckAt, type ProviderLink } from './schedule'
import { priceOf } from './serializer'
import type { Facts } from './transition-input'
import { hasActiveStatus, hasEnded, isUnpaidCheckout, type Status, shownStatus } from './transitions'

const EVENT_NAME_BY_STATUS: Record<Status, string> = {
  pending: 'subscription-created',
  active: 'subscription-activated',
  trialing: 'subscription-trialing',
  past_due: 'subscription-past-due',
  paused: 'subscription-paused',
  lapsed: 'subscription-canceled',
  canceled: 'subscription-canceled',
  abandoned: 'subscription-expired',
  expired: 'subscription-expired',
}

/** Returns the name of the event about a change, or undefined if there is nothing to tell. */
function eventNameOf(before: Subscription | undefined, after: Subscription): string | undefined {
  if (before?.status !== after.status) {
    const isTold = before && EVENT_NAME_BY_STATUS[before.status] === EVENT_NAME_BY_STATUS[after.status]
    return isTold ? undefined : EVENT_NAME_BY_STATUS[after.status]
  }
  if (!before.pause !== !after.pause) return after.pause ? 'subscription-paused' : 'subscription-resumed'
  return before.currentPeriodEnd === after.currentPeriodEnd ? undefined : 'subscription-renewed'
}

/** Returns what emits an event if the status or the pause of a subscription has changed, or its period was renewed. */
export function statusEventOf(before: Subscription | undefined, after: Subscription, by?: string): Effect[] {
  const eventName = eventNameOf(before, after)
  if (!eventName) return []
  const metadata = { status: shownStatus(after), before: before && shownStatus(before) }
  const { pause } = after
  return [
    { kind: 'emit event', subscription: after, eventName, metadata: pause ? { ...metadata, pause } : metadata, by },
  ]
}

/** Returns what follows from a change of a subscription: for others that wait, at its provider, and for its price. */
export function followUps(before: Subscription, after: Subscription, { time, others }: Facts): Effect[] {
  const { _id, providerKind, externalSubscriptionId: external } = after
  const effects: Effect[] = []
  // The provider is asked about those that were kept from coming into force.
  if (hasActiveStatus(before) && !hasActiveStatus(after))
    effects.push(...others.filter(({ conflict }) => conflict).map((other) => immediateCheckOf(other, time)))
  if (hasEnded(after) && providerKind)
    effects.push({ kind: 'void placeholder invoices', subscription: after, providerKind })
  if (before.externalSubscriptionId && before.externalSubscriptionId !== external)
    effects.push(...providerCancelOf(_id, { ...before, externalCheckoutId: null }))
  if (after.couponBenefitEndsAt !== before.couponBenefitEndsAt) effects.push(...benefitEndPriceOf(after))
  if (isMispriced(before, after, time)) effects.push({ kind: 'send price', subscription: _id })
  return effects
}

/**
 * Returns whether the provider may charge another amount than the current price: that of an earlier checkout, of an earlier
 * price, or of a coupon that was lost. If our last checkout did not create the subscription, or there was none, the customer
 * may have chosen its price.
 */
function isMispriced(before: Subscription, after: Subscription, time: number) {
  const { externalSubscriptionId: previousExternalId } = before
  const isUnpaid = isUnpaidCheckout(before)
  const previousPrice = isUnpaid ? before.checkoutAmount : priceOf(before, time)
  // A subscription that was active without a provider was free.
  const isOther = (previousExternalId !== null || !isUnpaid) && previousExternalId !== after.externalSubscriptionId
  const isBilledNow = hasActiveStatus(after) && after.externalSubscriptionId !== null
  return isBilledNow && (isOther || previousPrice !== priceOf(after, time))
}

/** Returns what replaces the queued lifecycle job of a subscription by one for its current state. */
export function checkOf(row: Subscription, time: number): Effect {
  // The job reads the setting of the grace period, and tells the provider what has lapsed.
  const isImmediate = row.status === 'past_due' || row.status === 'lapsed'
  const payload = { subscription: row._id, asked: time }
  return { kind: 'schedule check', at: isImmediate ? time : nextCheckAt(row, 0, time), payload }
}

/** Returns what has the provider asked again at once about a subscription that may come into force now. */
const immediateCheckOf = ({ _id }: Subscription, time: number): Effect => ({
  ...{ kind: 'schedule check', at: time, payload: { subscription: _id, asked: 0 } },
})

/** Returns what replaces the queued lifecycle job, if the change of the subscription may require an earlier one. */
export function changedCheckOf(before: Subscription, after: Subscription, time: number): Effect[] {
  if (hasEnded(after)) return []
  const isNewlyLinked = isLinked(after) && !isLinked(before)
  const isNewlyPastDue = after.pastDueSince !== null && after.pastDueSince !== before.pastDueSince
  const isRenewed = after.currentPeriodEnd !== before.currentPeriodEnd
  const isEndScheduled = after.cancelAtPeriodEnd && (isRenewed || !before.cancelAtPeriodEnd)
  // An abandoned checkout is no longer watched.
  const isRevived = before.status === 'abandoned' && (after.status !== 'abandoned' || after.conflict !== null)
  return isNewlyLinked || isNewlyPastDue || isEndScheduled || isRevived ? [checkOf(after, time)] : []
}

/** Returns what sends the full price to the provider when the discount ends. */
export const benefitEndPriceOf = ({ _id, couponBenefitEndsAt }: Subscription): Effect[] =>
  couponBenefitEndsAt ? [{ kind: 'send price', subscription: _id, at: Date.parse(couponBenefitEndsAt) + 1 }] : []

/** Returns what cancels a checkout or a subscription at the provider, if it knows one, at once or at a time (ms). */
export function providerCancelOf(subscription: string, link: ProviderLink, at?: number): Effect[] {
  if (!isLinked(link)) return []
  const { providerKind, providerSourceId, externalSubscriptionId, externalCheckoutId } = link
  const ids = { subscription, providerKind, providerSourceId, externalSubscriptionId, externalCheckoutId }
  return [{ kind: 'cancel at provider', link: ids, at }]
}
