import { fittingPeriod } from '../billing-period'
import { benefitEndOf, NO_COUPON, redemptionOf } from '../coupons/redemption'
import { providerOf } from '../providers'
import type { ProviderInvoice, ProviderState } from '../providers/provider'
import type { Invoice, Subscription } from '../tables'
import type { Effect } from './effects'
import { changedCheckOf, checkOf, followUps, statusEventOf } from './follow-ups'
import { nextState } from './next-state'
import { type Obstacle, PAYING_TRIGGERS, reject } from './rejection'
import { isLinked } from './schedule'
import { priceOf } from './serializer'
import type { Decision, Facts, Step, TransitionEvent } from './transition-input'
import {
  ACTIVE_STATUSES,
  type EventMeaning,
  hasActiveStatus,
  hasEnded,
  isUnpaidCheckout,
  type Status,
  TRANSITIONS,
  type Trigger,
} from './transitions'

/** The trigger of an `updated` event, by the status that the provider reports. */
const triggerByStatus: Record<NonNullable<ProviderState['status']>, Trigger | undefined> = {
  ...{ active: 'activated', trialing: 'trial', past_due: 'payment failed', paused: 'paused' },
  ...{ canceled: 'canceled', expired: 'expired', pending: undefined },
}

/** The status that a meaning gives its invoice. Other meanings give none. */
const INVOICE_STATUSES: Partial<Record<Trigger | EventMeaning, Invoice['status']>> = {
  ...{ paid: 'paid', 'payment failed': 'open', voided: 'void' },
}

/**
 * Decides what becomes of a subscription, and what follows from it. The decision depends on its arguments alone. The invoice
 * is saved even if the transition is refused.
 */
export function decide(before: Subscription, reported: TransitionEvent, facts: Facts): Decision {
  const event = withFittingPeriod(before, reported)
  const { meaning, occurredAt, providerKind } = event
  const isStale = occurredAt !== undefined && before.lastEventAt !== null && occurredAt < before.lastEventAt
  const decision = decideState(before, event, facts, isStale)
  const { next } = decision
  const { externalSubscriptionId, pastDueSince } = next
  const effects: Effect[] = [...invoiceEffects(before, event, facts.time, isStale), ...decision.effects]
  if (externalSubscriptionId && externalSubscriptionId !== before.externalSubscriptionId && next.providerKind)
    effects.push({ kind: 'retry parked events', providerKind: next.providerKind, externalSubscriptionId })
  const hasFailedLater = pastDueSince !== null && Date.parse(pastDueSince) > (occurredAt ?? facts.time)
  if (meaning === 'paid' && providerKind && !hasFailedLater)
    effects.push({ kind: 'void placeholder invoices', subscription: next, providerKind })
  return { ...decision, effects }
}

/** Returns the event with the period that fits the billing cycle, where there are several. */
const withFittingPeriod = ({ billingCycle }: Subscription, event: TransitionEvent): TransitionEvent => ({
  ...event,
  ...fittingPeriod(event.periods, billingCycle),
})

function invoiceEffects(before: Subscription, event: TransitionEvent, time: number, isStale: boolean): Effect[] {
  const { meaning, invoice } = event
  if (!invoice || (meaning === 'payment failed' && isStale && !isStillOwed(before, invoice))) return []
  const [status, providerKind] = [INVOICE_STATUSES[meaning], event.providerKind ?? before.providerKind]
  const effects: Effect[] = []
  if (status && providerKind)
    effects.push({ kind: 'save invoice', subscription: before, providerKind, invoice: { ...invoice, status } })
  // The provider is asked once more, because an ended subscription got an invoice.
  return hasEnded(before) ? [...effects, checkOf(before, time)] : effects
}

/**
 * Returns whether the invoice of an outdated failure may still be owed. A placeholder may not: no later event would close it.
 */
function isStillOwed(row: Subscription, { externalInvoiceId }: ProviderInvoice) {
  const isPlaceholder = row.providerKind && providerOf(row.providerKind).isPlaceholderInvoice?.(externalInvoiceId, row)
  return !isPlaceholder && (row.status === 'past_due' || row.status === 'lapsed')
}

function decideState(before: Subscription, event: TransitionEvent, facts: Facts, isStale: boolean): Decision {
  const unchanged: Decision = { next: before, outcome: 'applied', effects: [] }
  if (event.meaning === 'voided' || event.invoice?.isExtra) return unchanged
  if (isStale) return { ...unchanged, outcome: 'stale', why: 'A later event was already applied.' }
  const [trigger, then] = triggersOf(before, event)
  const first = move(before, { ...event, ...facts, trigger })
  if (!then || first.outcome !== 'applied') return first
  // The overdue ones were replaced.
  const others = facts.others.filter(({ status }) => status !== 'past_due')
  const second = move(first.next, { ...event, ...facts, others, trigger: then })
  return { ...second, effects: [...first.effects, ...second.effects] }
}

/** Returns the triggers of an event, one after the other. */
function triggersOf(before: Subscription, { meaning, status }: TransitionEvent): [Trigger | undefined, Trigger?] {
  const trigger = meaning === 'updated' ? status && triggerByStatus[status] : (meaning as Trigger)
  // An overdue subscription was active before, even if no event said so.
  const isAlsoActivated = isUnpaidCheckout(before) && trigger === 'payment failed' && status === 'past_due'
  return isAlsoActivated ? ['activated', trigger] : [trigger]
}

/** Returns the status to which an event leads first, if nothing is in its way; undefined if it is not allowed. */
export const firstStatus = (before: Subscription, event: TransitionEvent, time: number): Status | undefined =>
  nextStatus(before, { ...withFittingPeriod(before, event), trigger: triggersOf(before, event)[0], time })

function move(before: Subscription, step: Step): Decision {
  const to = nextStatus(before, step)
  const obstacle = findObstacle(before, to, step)
  if (!to || obstacle) return reject(before, step, obstacle)
  const changed = nextState(before, to, step)
  const isActivated = to === 'active' && before.status !== 'active'
  const { next, effects } = isActivated ? withRedemption(changed, step) : { next: changed, effects: [] }
  const saving: Effect = { kind: 'save subscription', subscription: next }
  const replaced = hasActiveStatus(next) && !hasActiveStatus(before) ? step.others : []
  const following = [
    ...[...statusEventOf(before, next, step.by), ...changedCheckOf(before, next, step.time)],
    ...[...replaced.flatMap((other) => replacementOf(other, step.time)), ...followUps(before, next, step)],
  ]
  return { next, outcome: 'applied', effects: [...effects, saving, ...following] }
}

/** Redeems the coupon of a subscription that becomes active. Removes the coupon if it has no redemptions left. */
function withRedemption(subscription: Subscription, { redemption, time }: Facts): Pick<Decision, 'next' | 'effects'> {
  const { couponId, couponCode } = subscription
  if (couponId === null || redemption === 'redeemed') return { next: subscription, effects: [] }
  if (redemption === 'left') {
    const next = { ...subscription, couponBenefitEndsAt: benefitEndOf(subscription, time) }
    return { next, effects: redemptionOf(subscription, couponId, time) }
  }
  const effects: Effect[] = [
    { kind: 'emit event', subscription, eventName: 'coupon-lost', metadata: { couponId, couponCode } },
  ]
  return { next: { ...subscription, ...NO_COUPON }, effects }
}

/**
 * Returns what ends an overdue subscription of an entity that has a new one: the provider would still try to collect it. It is
 * told unless the subscription was paid meanwhile.
 */
function replacementOf(other: Subscription, time: number): Effect[] {
  if (other.status !== 'past_due') return []
  const { next, effects } = move(other, { trigger: 'replaced', time, others: [] })
  return next.status === 'lapsed' ? [...effects, checkOf(next, time)] : effects
}

type StatusStep = Omit<Step, 'others'>

/** Returns the next status, or undefined if `TRANSITIONS` does not allow the trigger. */
function nextStatus(before: Subscription, step: StatusStep): Status | undefined {
  const { status } = before
  if (stays(before, step)) return hasEnded({ status }) ? undefined : status
  const to = TRANSITIONS[status][step.trigger!]
  // Nobody has to confirm the end of what no provider bills.
  return to === 'lapsed' && !isLinked(before) ? 'canceled' : to
}

/** Returns whether a trigger keeps the status, whatever `TRANSITIONS` says. */
function stays(row: Subscription, { trigger, invoice, status, time, ...step }: StatusStep) {
  if (!trigger) return true
  const isInForce = row.status === 'active' || row.status === 'past_due'
  // A paid invoice of zero, such as that of a trial, says nothing about what follows.
  if (trigger === 'paid' && invoice?.amount === 0) return !isInForce
  if (row.status === 'paused' && trigger === 'payment failed') return status !== 'past_due'
  if (row.status !== 'lapsed' || trigger !== 'activated' || !(step.cancelAtPeriodEnd ?? row.cancelAtPeriodEnd))
    return false
  // The provider has not ended yet what was not renewed.
  return (step.periodEnd ?? Date.parse(row.currentPeriodEnd ?? '')) <= time
}

/** Returns why a transition is not possible although `TRANSITIONS` allows it, or undefined. */
function findObstacle(before: Subscription, to: Status | undefined, step: Step): Obstacle | undefined {
  const { trigger, externalSubscriptionId: external, time, owner, others } = step
  if (external && external !== before.externalSubscriptionId) {
    // Of several checkouts, the one that was paid counts, also if another one was overdue or paused.
    const isFree = before.providerKind === null && before.status !== 'pending' && priceOf(before, time) === 0
    const isDecided =
      isFree || (before.externalSubscriptionId && (hasActiveStatus(before) || !PAYING_TRIGGERS.includes(trigger)))
    if (isDecided || owner) return { why: `The event is about another subscription at the provider: ${external}.` }
  }
  // An overdue subscription is in force until its grace period ends.
  const isInForce = hasActiveStatus(before) || before.status === 'past_due'
  if (!to || !(ACTIVE_STATUSES.includes(to) ? !hasActiveStatus(before) : to === 'past_due' && !isInForce)) return
  // No checkout of ours can have led to a payment.
  if (before.basePrice === null) return { why: 'An administrator has not set the price of this subscription.' }
  const other = others.find(hasActiveStatus)
  const why = 'The entity already has an active subscription.'
  return other && { why, existingSubscriptionId: other._id }
}
