import { DAY_MS, toIsoString } from '../../core/clock'
import { addSpan, cycleSpan, isCountedFrom, periodAfter } from '../billing-period'
import type { Pause, Subscription } from '../tables'
import type { Step, TransitionInput } from './transition-input'
import { hasEnded, isUnpaidCheckout, type Status } from './transitions'

/** Returns a subscription after a transition to a status. */
export function nextState(before: Subscription, to: Status, step: Step): Subscription {
  const { occurredAt, time } = step
  const at = occurredAt ?? time
  const isUnpaid = isUnpaidCheckout({ status: to })
  const ends = hasEnded({ status: to })
  return {
    ...before,
    ...nextPeriod(before, to, step, at),
    trialEndsAt: step.trialEndsAt === undefined ? before.trialEndsAt : toIsoString(step.trialEndsAt),
    cancelAtPeriodEnd: step.cancelAtPeriodEnd ?? before.cancelAtPeriodEnd,
    pastDueSince: nextPastDueSince(before, to, at),
    cancelRequested: ends ? null : before.cancelRequested,
    pause: nextPause(before, to, step, at),
    conflict: to === before.status && !ends ? before.conflict : null,
    endedBy: ends ? (step.endedBy ?? 'provider') : null,
    ...nextProviderLink(before, step),
    checkoutUntil: isUnpaid ? before.checkoutUntil : null,
    // While it is not paid, no event counts as outdated, because any may start it.
    lastEventAt: isUnpaid ? before.lastEventAt : (occurredAt ?? before.lastEventAt),
    ...{ status: to, updated: toIsoString(time) },
  }
}

function nextPastDueSince({ pastDueSince }: Subscription, to: Status, at: number) {
  if (to === 'lapsed') return pastDueSince
  return to === 'past_due' ? (pastDueSince ?? toIsoString(at)) : null
}

/**
 * Returns the pause after a transition. Providers that give no reason pause on request, or because they stopped to collect
 * an overdue payment.
 */
function nextPause(before: Subscription, to: Status, { pause }: TransitionInput, at: number): Pause | null {
  if (to !== 'paused' && !['active', 'trialing', 'past_due'].includes(to)) return null
  if (to !== 'paused' && pause === undefined) return before.status === 'paused' ? null : before.pause
  if (to !== 'paused' && pause === null) return null
  const isOverdue = before.status === 'past_due' || before.status === 'lapsed'
  const known = before.status === to ? before.pause : null
  const reason = pause?.reason ?? known?.reason ?? (isOverdue ? 'final_payment_failure' : 'pause_requested')
  return {
    since: pause?.since === undefined ? (known?.since ?? toIsoString(at)) : toIsoString(pause.since),
    resumes: pause?.resumes === undefined ? null : toIsoString(pause.resumes),
    reason,
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
function nextPeriod(before: Subscription, to: Status, { trigger, invoice, ...step }: Step, at: number) {
  const { currentPeriodStart, currentPeriodEnd, periodAnchor, billingCycle } = before
  const unchanged = { currentPeriodStart, currentPeriodEnd, periodAnchor }
  const [start, end] = [step.periodStart ?? invoice?.periodStart, step.periodEnd ?? invoice?.periodEnd]
  const knownEnd = currentPeriodEnd === null ? undefined : Date.parse(currentPeriodEnd)
  const cycle = cycleSpan(billingCycle)
  const toPeriod = (from: number, until: number, anchor: number) => ({
    currentPeriodStart: toIsoString(from),
    currentPeriodEnd: toIsoString(until),
    periodAnchor: toIsoString(anchor),
  })
  const anchor = periodAnchor === null ? undefined : Date.parse(periodAnchor)
  if (end !== undefined && trigger !== 'payment failed') {
    if (trigger === 'paid' && knownEnd !== undefined && end <= knownEnd) return unchanged
    const from =
      start ?? (knownEnd !== undefined && knownEnd < end ? knownEnd : Date.parse(currentPeriodStart ?? toIsoString(at)))
    return toPeriod(from, end, anchor !== undefined && isCountedFrom(anchor, cycle, from) ? anchor : from)
  }
  if (knownEnd === undefined && (to === 'active' || to === 'trialing'))
    return toPeriod(start ?? at, addSpan(start ?? at, cycle), start ?? at)
  if (trigger === 'paid' && knownEnd !== undefined && at >= knownEnd) {
    const from = anchor !== undefined && isCountedFrom(anchor, cycle, knownEnd) ? anchor : knownEnd
    return toPeriod(knownEnd, periodAfter(from, cycle, knownEnd + DAY_MS - 1).end, from)
  }
  return unchanged
}
