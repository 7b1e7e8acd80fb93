import { DAY_MS, HOUR_MS } from '../../core/clock'
import type { Subscription } from '../tables'
import { isOver } from './transitions'

/** How long, in ms, a subscription stays pending after its last change. */
const CHECKOUT_ABANDONED_AFTER_MS = DAY_MS

/** The payload of the lifecycle job. `asked` is when (ms) the provider was last asked, or the job was scheduled. */
export type LifecyclePayload = { subscription: string; asked: number }

/** The ids of a subscription and its checkout at a provider, and the connection to it. */
export type ProviderLink = Pick<
  Subscription,
  'providerKind' | 'providerSourceId' | 'externalSubscriptionId' | 'externalCheckoutId'
>

/** Returns whether a provider knows the subscription or its checkout. */
export const isLinked = ({ providerKind, externalSubscriptionId, externalCheckoutId }: ProviderLink) =>
  providerKind !== null && (externalSubscriptionId ?? externalCheckoutId) !== null

/** Returns whether two links lead to the same subscription and checkout. */
export const isSameLink = (
  one: Pick<ProviderLink, 'externalSubscriptionId' | 'externalCheckoutId'>,
  other: Pick<ProviderLink, 'externalSubscriptionId' | 'externalCheckoutId'>,
) => one.externalSubscriptionId === other.externalSubscriptionId && one.externalCheckoutId === other.externalCheckoutId

/** Returns when (ms) and by which trigger a subscription ends, if it does. `grace` is the grace period in ms. */
export function nextEndOf(row: Subscription, grace: number) {
  const { status, basePrice, updated, pastDueSince, cancelAtPeriodEnd, currentPeriodEnd } = row
  // The provider decides about what is paused, and an admin about what is paid twice.
  if (isOver(row) || status === 'paused' || row.conflict) return
  // There can be no checkout until an admin has set the price.
  if (status === 'pending')
    return basePrice === null
      ? undefined
      : { at: Date.parse(updated) + CHECKOUT_ABANDONED_AFTER_MS, trigger: 'checkout abandoned' as const }
  const ends = [
    ...(status === 'past_due' && pastDueSince
      ? [{ at: Date.parse(pastDueSince) + grace, trigger: 'grace ended' as const }]
      : []),
    ...(cancelAtPeriodEnd && currentPeriodEnd
      ? [{ at: Date.parse(currentPeriodEnd), trigger: 'period ended' as const }]
      : []),
  ]
  return ends.sort((a, b) => a.at - b.at)[0]
}

/** Returns when (ms) the lifecycle job runs next: at the end, and each hour if it is linked to a provider; or undefined. */
export function nextCheckAt(row: Subscription, grace: number, lastCheckAt: number): number | undefined {
  if (row.status === 'abandoned' && !row.conflict) return
  const times = [nextEndOf(row, grace)?.at, isLinked(row) ? lastCheckAt + HOUR_MS : undefined].filter(
    (at) => at !== undefined,
  )
  return times.length ? Math.min(...times) : undefined
}
