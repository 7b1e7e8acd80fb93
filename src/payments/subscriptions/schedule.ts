import { DAY_MS, now } from '../../core/clock'
import { deleteQueued, enqueue, replaceQueued } from '../../jobs/queue'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { Subscription } from '../tables'
import { CANCEL_ORPHANED_JOB, LIFECYCLE_JOB, REPRICE_JOB } from './job-kinds'

type TenantRef = Pick<Tenant, 'tenant'>

const HOUR = 3_600_000
/** How long one waits for its checkout since anything was done about it, in ms. */
const CHECKOUT_ABANDONED_AFTER_MS = DAY_MS

/** What the job of a subscription knows: when (ms) the provider was asked last, or told of it. */
export type LifecyclePayload = { subscription: string; asked: number }

/** What a provider has, and by which connection it is asked. */
export type ProviderLink = Pick<
  Subscription,
  'providerKind' | 'providerSourceId' | 'externalSubscriptionId' | 'externalCheckoutId'
>

/** Whether a provider knows of it. */
export const isLinked = ({ providerKind, externalSubscriptionId, externalCheckoutId }: ProviderLink) =>
  providerKind !== null && (externalSubscriptionId ?? externalCheckoutId) !== null

const hasEnded = ({ status }: Subscription) => status === 'canceled' || status === 'expired'

/** What time has brought or will bring, and when (ms); `grace` (ms) is how long a payment may be missing. */
export function nextEndOf(row: Subscription, grace: number) {
  const { status, basePrice, updated, pastDueSince, cancelAtPeriodEnd, currentPeriodEnd } = row
  if (hasEnded(row)) return
  // Until an admin has said the price, nobody can check out.
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

/** When (ms) it is to be looked at next: when something ends, and each hour what the provider has; undefined for never. */
export function nextCheckAt(row: Subscription, grace: number, lastCheckAt: number): number | undefined {
  const times = [nextEndOf(row, grace)?.at, isLinked(row) ? lastCheckAt + HOUR : undefined].filter(
    (at) => at !== undefined,
  )
  return times.length ? Math.min(...times) : undefined
}

const orderingKeyOf = (subscription: string) => `${LIFECYCLE_JOB} ${subscription}`

/** Has time bring what it brings, from how the subscription is now. */
export async function scheduleLifecycle(tx: Tx, ctx: TenantRef, row: Subscription) {
  const orderingKey = orderingKeyOf(row._id)
  // How long the grace is the job finds out.
  const at = row.status === 'past_due' ? now() : nextCheckAt(row, 0, now())
  const payload: LifecyclePayload = { subscription: row._id, asked: now() }
  if (at === undefined) await deleteQueued(tx, orderingKey)
  else await replaceQueued(ctx, tx, { kind: LIFECYCLE_JOB, orderingKey, payload, at })
}

/** The same where it may have to come earlier than it would. */
export async function rescheduleLifecycle(tx: Tx, ctx: TenantRef, before: Subscription, after: Subscription) {
  if (hasEnded(after)) return
  const isNewlyLinked = isLinked(after) && !isLinked(before)
  const isNewlyPastDue = after.pastDueSince !== null && after.pastDueSince !== before.pastDueSince
  const isRenewed = after.currentPeriodEnd !== before.currentPeriodEnd
  const isEndScheduled = after.cancelAtPeriodEnd && (isRenewed || !before.cancelAtPeriodEnd)
  if (isNewlyLinked || isNewlyPastDue || isEndScheduled) await scheduleLifecycle(tx, ctx, after)
}

/** Has the provider told the price without the discount, once that is over. */
export async function scheduleBenefitEnd(tx: Tx, ctx: TenantRef, { _id, couponBenefitEndsAt }: Subscription) {
  if (!couponBenefitEndsAt) return
  await enqueue(ctx, tx, { kind: REPRICE_JOB, payload: { subscription: _id }, at: Date.parse(couponBenefitEndsAt) + 1 })
}

/** Has something end at the provider by which the subscription does not go, or not any more. */
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
