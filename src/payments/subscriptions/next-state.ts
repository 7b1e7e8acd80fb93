import { now, toIsoString } from '../../core/clock'
import { addSpan, cycleSpan } from '../billing-period'
import type { Subscription } from '../tables'
import type { TransitionInput } from './state-machine'
import type { Status, Trigger } from './transitions'

/** What it is like afterwards, but for its status. */
export function nextFields(before: Subscription, to: Status, trigger: Trigger | undefined, input: TransitionInput) {
  const { occurredAt } = input
  const at = occurredAt ?? now()
  const missingSince = to === 'past_due' ? (before.pastDueSince ?? toIsoString(at)) : null
  return {
    ...nextPeriod(before, to, trigger, input, at),
    trialEndsAt: input.trialEndsAt === undefined ? before.trialEndsAt : toIsoString(input.trialEndsAt),
    cancelAtPeriodEnd: input.cancelAtPeriodEnd ?? before.cancelAtPeriodEnd,
    pastDueSince: missingSince,
    cancelRequested: to === 'canceled' || to === 'expired' ? null : before.cancelRequested,
    ...nextProviderLink(before, input),
    checkoutUntil: to === 'pending' ? before.checkoutUntil : null,
    // While it waits for its beginning, nothing is too old for that.
    lastEventAt: to === 'pending' ? before.lastEventAt : (occurredAt ?? before.lastEventAt),
  }
}

/**
 * How it is called, and where: of the checkouts of a subscription one may be at another provider or account than the last,
 * and the one that is paid has to be found there.
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

/** The period that it is in: what is told, else what its cycle makes of what is known. A payment never sets it back. */
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
