import { toIsoString } from '../../core/clock'
import type { Subscription } from '../tables'
import type { Effect } from './effects'
import { changedCheckOf, providerCancelOf } from './follow-ups'
import { nextProviderLink } from './next-state'
import type { Decision, Step } from './transition-input'
import { hasEnded, shownStatus, type Trigger } from './transitions'

/** Triggers after which the customer pays, or gets access. */
export const PAYING_TRIGGERS: (Trigger | undefined)[] = ['activated', 'trial', 'paid']

/** Why a transition is not possible although `TRANSITIONS` allows it, and the subscription in force that is in its way. */
export type Obstacle = { why: string; existingSubscriptionId?: string }

/** Refuses a transition. If the customer pays for something that they do not get, admins are told. */
export function reject(before: Subscription, step: Step, obstacle?: Obstacle): Decision {
  const { trigger, occurredAt, externalSubscriptionId, invoice, isReported } = step
  const why = obstacle?.why ?? `Transition '${trigger ?? 'changed'}' is not allowed from status ${shownStatus(before)}.`
  const refused = { next: before, outcome: 'refused', why } as const
  if (!PAYING_TRIGGERS.includes(trigger) || occurredAt === undefined) return { ...refused, effects: [] }
  const details = { trigger, externalSubscriptionId, invoice: invoice?.externalInvoiceId }
  if (obstacle?.existingSubscriptionId) {
    const conflict = decideConflict(before, obstacle.existingSubscriptionId, step, { ...details, ...obstacle })
    return { ...refused, ...conflict }
  }
  const isPaidLate = trigger === 'paid' && invoice?.amount && hasEnded(before)
  const effects = [
    ...(isReported ? [] : [eventOf('webhook-failed', before, { ...details, why })]),
    ...(isPaidLate ? lateRefundOf(before, step) : []),
    ...(!hasEnded(before) || before.endedBy === 'request' ? surplusCancelOf(before, step) : []),
  ]
  return { ...refused, effects }
}

const eventOf = (eventName: string, subscription: Subscription, metadata: Record<string, unknown>): Effect => ({
  ...{ kind: 'emit event', eventName, subscription, metadata },
})

/**
 * Decides that a subscription is paid while another one of its entity is in force, with the link by which an admin can cancel
 * it. Nothing is canceled by itself.
 */
function decideConflict(before: Subscription, subscriptionId: string, step: Step, details: Record<string, unknown>) {
  const isKnown = before.conflict?.subscriptionId === subscriptionId
  const conflict = isKnown ? before.conflict : { subscriptionId, since: toIsoString(step.time) }
  const next = { ...before, ...nextProviderLink(before, step), conflict }
  const metadata = { ...details, providerKind: next.providerKind }
  const effects: Effect[] = [
    { kind: 'save subscription', subscription: next },
    ...changedCheckOf(before, next, step.time),
    ...(isKnown ? [] : [eventOf('subscription-conflict', next, metadata)]),
    ...(step.isReported ? [] : [eventOf('webhook-failed', next, details)]),
  ]
  return { next, effects }
}

/** Returns what tells admins of a payment that arrived after the end, so that they can give it back. */
function lateRefundOf(subscription: Subscription, { invoice, ...input }: Step): Effect[] {
  const providerKind = input.providerKind ?? subscription.providerKind
  const isEarlier = (invoice!.paidAt ?? input.occurredAt!) < Date.parse(subscription.updated) - CLOCK_TOLERANCE_MS
  if (!providerKind || isEarlier) return []
  const why = 'It was paid after the subscription had ended.'
  return [{ kind: 'offer refund', subscription, providerKind, invoice: invoice!, why }]
}
const CLOCK_TOLERANCE_MS = 1_000 // providers report whole seconds

/** Returns what cancels a subscription at the provider that is paid in vain, unless one here that has not ended uses it. */
function surplusCancelOf(row: Subscription, { owner, ...input }: Step): Effect[] {
  const externalSubscriptionId = input.externalSubscriptionId ?? row.externalSubscriptionId
  const providerKind = input.providerKind ?? row.providerKind
  if (!externalSubscriptionId || !providerKind || (owner && !hasEnded(owner))) return []
  const providerSourceId = input.providerSourceId ?? row.providerSourceId
  const link = { providerKind, providerSourceId, externalSubscriptionId, externalCheckoutId: null }
  return providerCancelOf(row._id, link)
}
