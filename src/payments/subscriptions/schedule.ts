import { DAY_MS, HOUR_MS, now } from '../../core/clock'
import { deleteQueued, enqueue, replaceQueued } from '../../jobs/queue'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { Subscription } from '../tables'
import { CANCEL_ORPHANED_JOB, LIFECYCLE_JOB, REPRICE_JOB } from './job-kinds'
import { hasEnded, isOver } from './transitions'

type TenantRef = Pick<Tenant, 'tenant'>

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

const orderingKeyOf = (subscription: string) => `${LIFECYCLE_JOB} ${subscription}`

/** Replaces the queued lifecycle job of a subscription by one for its current state. */
export async function scheduleLifecycle(tx: Tx, ctx: TenantRef, row: Subscription) {
  const orderingKey = orderingKeyOf(row._id)
  // The job reads the setting of the grace period, and tells the provider what has lapsed.
  const isImmediate = row.status === 'past_due' || row.status === 'lapsed'
  const at = isImmediate ? now() : nextCheckAt(row, 0, now())
  const payload: LifecyclePayload = { subscription: row._id, asked: now() }
  if (at === undefined) await deleteQueued(tx, orderingKey)
  else await replaceQueued(ctx, tx, { kind: LIFECYCLE_JOB, orderingKey, payload, at })
}

/** Has the provider asked again at once about a subscription that may come into force now. */
export async function scheduleCheck(tx: Tx, ctx: TenantRef, { _id }: Subscription) {
  const payload: LifecyclePayload = { subscription: _id, asked: 0 }
  await replaceQueued(ctx, tx, { kind: LIFECYCLE_JOB, orderingKey: orderingKeyOf(_id), payload, at: now() })
}

/** Replaces the queued lifecycle job if the change of the subscription may require an earlier one. */
export async function rescheduleLifecycle(tx: Tx, ctx: TenantRef, before: Subscription, after: Subscription) {
  if (hasEnded(after)) return
  const isNewlyLinked = isLinked(after) && !isLinked(before)
  const isNewlyPastDue = after.pastDueSince !== null && after.pastDueSince !== before.pastDueSince
  const isRenewed = after.currentPeriodEnd !== before.currentPeriodEnd
  const isEndScheduled = after.cancelAtPeriodEnd && (isRenewed || !before.cancelAtPeriodEnd)
  // An abandoned checkout is no longer watched.
  const isRevived = before.status === 'abandoned' && (after.status !== 'abandoned' || after.conflict !== null)
  if (isNewlyLinked || isNewlyPastDue || isEndScheduled || isRevived) await scheduleLifecycle(tx, ctx, after)
}

/** Queues a job that sends the full price to the provider when the discount ends. */
export async function scheduleBenefitEnd(tx: Tx, ctx: TenantRef, { _id, couponBenefitEndsAt }: Subscription) {
  if (!couponBenefitEndsAt) return
  await enqueue(ctx, tx, { kind: REPRICE_JOB, payload: { subscription: _id }, at: Date.parse(couponBenefitEndsAt) + 1 })
}

/** Queues a job that cancels a checkout or a subscription at the provider that is not, or no longer, used. */
export async function scheduleProviderCancel(
  tx: Tx,
  ctx: TenantRef,
  subscription: string,
  link: ProviderLink,
  at?: number,
) {
  if (!isLinked(link)) return
  const { providerKind, providerSourceId, externalSubscriptionId, externalCheckoutId } = link
  const payload = { subscription, providerKind, providerSourceId, externalSubscriptionId, externalCheckoutId }
  await enqueue(ctx, tx, { kind: CANCEL_ORPHANED_JOB, payload, at })
}
