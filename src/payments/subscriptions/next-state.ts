import { now, toIsoString } from '../../core/clock'
import { addSpan, cycleSpan } from '../billing-period'
import type { Subscription } from '../tables'
import type { TransitionInput } from './state-machine'
import type { Status, Trigger } from './transitions'

/** Returns the fields of a subscription after a transition to a status, without the status. */
export function nextFields(before: Subscription, to: Status, trigger: Trigger | undefined, input: TransitionInput) {
  const { occurredAt } = input
  const at = occurredAt ?? now()
  const pastDueSince = to === 'past_due' ? (before.pastDueSince ?? toIsoString(at)) : null
  return {
    ...nextPeriod(before, to, trigger, input, at),
    trialEndsAt: input.trialEndsAt === undefined ? before.trialEndsAt : toIsoString(input.trialEndsAt),
    cancelAtPeriodEnd: input.cancelAtPeriodEnd ?? before.cancelAtPeriodEnd,
    pastDueSince,
    cancelRequested: to === 'canceled' || to === 'expired' ? null : before.cancelRequested,
    ...nextProviderLink(before, input),
    checkoutUntil: to === 'pending' ? before.checkoutUntil : null,
    // While it is pending, no event counts as outdated, because any may start it.
    lastEventAt: to === 'pending' ? before.lastEventAt : (occurredAt ?? before.lastEventAt),
  }
}

/**
 * Returns the provider's id of a subscription and its connection. A checkout may have been started at another provider or
 * account than the latest one, and the link must lead to the one that was paid.
 */
export function nextProviderLink(
  before: Subscription,
  { externalSubscriptionId: external, ...origin }: TransitionInput,
) {
  const { externalSubscriptionId = null, providerKind, providerSourceId } = before
  if (!external || external === externalSubscriptionId)
    return { externalSubscriptionId, providerKind, providerSourceId }
  return {
    externalSubscriptionId: external,
    providerKind: origin.providerKind ?? providerKind,
    providerSourceId: origin.providerSourceId ?? providerSourceId,
  }
}

/** Returns the period: the reported one, else one computed from the billing cycle. A payment never moves it back. */
function nextPeriod(
  before: Subscription,
  to: Status,
  trigger: Trigger | undefined,
  input: TransitionInput,
  at: number,
) {
  const unchanged = { currentPeriodStart: before.currentPeriodStart, currentPeriodEnd: before.currentPeriodEnd }
  const [start, end] = [input.periodStart ?? input.invoice?.periodStart, input.periodEnd ?? input.invoice?.periodEnd]
  const knownEnd = before.currentPeriodEnd === null ? undefined : Date.parse(before.currentPeriodEnd)
  const cycle = cycleSpan(before.billingCycle)
  if (end !== undefined && trigger !== 'payment failed') {
    if (trigger === 'paid' && knownEnd !== undefined && end <= knownEnd) return unchanged
    const periodStart =
      start ??
      (knownEnd !== undefined && knownEnd < end ? knownEnd : Date.parse(before.currentPeriodStart ?? toIsoString(at)))
    return { currentPeriodStart: toIsoString(periodStart), currentPeriodEnd: toIsoString(end) }
  }
  if (knownEnd === undefined && (to === 'active' || to === 'trialing'))
    return { currentPeriodStart: toIsoString(start ?? at), currentPeriodEnd: toIsoString(addSpan(start ?? at, cycle)) }
  if (trigger === 'paid' && knownEnd !== undefined && at >= knownEnd)
    return { currentPeriodStart: toIsoString(knownEnd), currentPeriodEnd: toIsoString(addSpan(knownEnd, cycle)) }
  return unchanged
}
