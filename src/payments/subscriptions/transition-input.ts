import type { ProviderInvoice, ProviderKind, ProviderState } from '../providers/provider'
import type { Subscription } from '../tables'

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

export type TransitionResult = {
  subscription: Subscription
  /** `stale`: a later event was already applied. `refused`: the transition is not possible; `why` says the reason. */
  outcome: 'applied' | 'stale' | 'refused'
  why?: string
}
