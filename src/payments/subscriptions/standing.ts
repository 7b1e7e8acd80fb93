import { iso, now } from '../../core/clock'
import { after, spanOf } from '../periods'
import type { Subscription } from '../tables'
import type { Told } from './machine'
import type { Status, Trigger } from './moves'

/** What it is like afterwards, but for its status. */
export function standingOf(before: Subscription, to: Status, trigger: Trigger | undefined, told: Told) {
  const { occurredAt } = told
  const at = occurredAt ?? now()
  const missed = to === 'past_due' ? (before.pastDueSince ?? iso(at)) : null
  return {
    ...periodOf(before, to, trigger, told, at),
    trialEndsAt: told.trialEndsAt === undefined ? before.trialEndsAt : iso(told.trialEndsAt),
    cancelAtPeriodEnd: told.cancelAtPeriodEnd ?? before.cancelAtPeriodEnd,
    pastDueSince: missed,
    cancelRequested: to === 'canceled' || to === 'expired' ? null : before.cancelRequested,
    ...namesOf(before, told),
    checkoutUntil: to === 'pending' ? before.checkoutUntil : null,
    // While it waits for its beginning, nothing is too old for that.
    lastEventAt: to === 'pending' ? before.lastEventAt : (occurredAt ?? before.lastEventAt),
  }
}

/**
 * How it is called, and where: of the checkouts of a subscription one may be at another provider or account than the last,
 * and the one that is paid has to be found there.
 */
export function namesOf(before: Subscription, { externalSubscriptionId: external, ...told }: Told) {
  const { externalSubscriptionId = null, providerKind, providerSourceId } = before
  if (!external || external === externalSubscriptionId)
    return { externalSubscriptionId, providerKind, providerSourceId }
  return {
    externalSubscriptionId: external,
    providerKind: told.providerKind ?? providerKind,
    providerSourceId: told.providerSourceId ?? providerSourceId,
  }
}

/** The period that it is in: what is told, else what its cycle makes of what is known. A payment never sets it back. */
function periodOf(before: Subscription, to: Status, trigger: Trigger | undefined, told: Told, at: number) {
  const kept = { currentPeriodStart: before.currentPeriodStart, currentPeriodEnd: before.currentPeriodEnd }
  const [start, end] = [told.periodStart ?? told.invoice?.periodStart, told.periodEnd ?? told.invoice?.periodEnd]
  const known = before.currentPeriodEnd === null ? undefined : Date.parse(before.currentPeriodEnd)
  const cycle = spanOf(before.billingCycle)
  if (end !== undefined && trigger !== 'payment failed') {
    if (trigger === 'paid' && known !== undefined && end <= known) return kept
    const begin =
      start ?? (known !== undefined && known < end ? known : Date.parse(before.currentPeriodStart ?? iso(at)))
    return { currentPeriodStart: iso(begin), currentPeriodEnd: iso(end) }
  }
  if (known === undefined && (to === 'active' || to === 'trialing'))
    return { currentPeriodStart: iso(start ?? at), currentPeriodEnd: iso(after(start ?? at, cycle)) }
  if (trigger === 'paid' && known !== undefined && at >= known)
    return { currentPeriodStart: iso(known), currentPeriodEnd: iso(after(known, cycle)) }
  return kept
}
