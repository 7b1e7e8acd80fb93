import type { Redemption } from '../coupons/redemption'
import type { ProviderInvoice, ProviderKind, ProviderState } from '../providers/provider'
import type { Subscription } from '../tables'
import type { Effect } from './effects'
import type { EventMeaning, Trigger } from './transitions'

/** The input of a transition, besides its trigger. */
export type TransitionInput = ProviderState & {
  /** The time of the event by the provider's clock (ms). Absent if the transition does not come from a provider. */
  occurredAt?: number
  providerKind?: ProviderKind
  externalSubscriptionId?: string
  /** The connection whose secret verified the event. */
  providerSourceId?: string | null
  invoice?: ProviderInvoice
  /** The id of the user who did it, for the emitted events. */
  by?: string
  /** Who caused an end (default: the provider). */
  endedBy?: Subscription['endedBy']
  /** Whether a refusal was reported already. */
  isReported?: boolean
}

/** An event of a provider, an action of ours, or the passing of time. */
export type TransitionEvent = TransitionInput & { meaning: Trigger | EventMeaning }

/** What a decision depends on besides the subscription and the event. */
export type Facts = {
  /** The current time (ms). */
  time: number
  /** The subscription that has the provider's id of the input. */
  owner?: Subscription
  /** The other subscriptions of the entity that are in force, overdue, or kept from coming into force. */
  others: Subscription[]
  /** Whether its coupon can be redeemed, if it has one. */
  redemption?: Redemption
}

/** One step of a decision: an event may be two triggers, one after the other. */
export type Step = TransitionInput & Facts & { trigger: Trigger | undefined }

type Outcome = {
  /** `stale`: a later event was already applied. `refused`: the transition is not possible; `why` says the reason. */
  outcome: 'applied' | 'stale' | 'refused'
  why?: string
}

/** What a subscription becomes, and what has to be done for that, in this order. */
export type Decision = Outcome & { next: Subscription; effects: Effect[] }

export type TransitionResult = Outcome & { subscription: Subscription }
