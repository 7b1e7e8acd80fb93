import { DAY, now } from '../../core/clock'
import { discard, enqueue, enqueueInstead } from '../../jobs/queue'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { Subscription } from '../tables'
import { CALL_OFF, REPRICE, TIME } from './kinds'

type Of = Pick<Tenant, 'tenant'>

const HOUR = 3_600_000
/** How long one waits for its checkout since anything was done about it, in ms. */
const ABANDONED = DAY

/** What the job of a subscription knows: when (ms) the provider was asked last, or told of it. */
export type Time = { subscription: string; asked: number }

/** What a provider has, and by which connection it is asked. */
export type Attachment = Pick<
  Subscription,
  'providerKind' | 'providerSourceId' | 'externalSubscriptionId' | 'externalCheckoutId'
>

/** Whether a provider knows of it. */
export const isAttached = ({ providerKind, externalSubscriptionId, externalCheckoutId }: Attachment) =>
  providerKind !== null && (externalSubscriptionId ?? externalCheckoutId) !== null

const isOver = ({ status }: Subscription) => status === 'canceled' || status === 'expired'

/** What time has brought or will bring, and when (ms); `grace` (ms) is how long a payment may be missing. */
export function endOf(row: Subscription, grace: number) {
  const { status, basePrice, updated, pastDueSince, cancelAtPeriodEnd, currentPeriodEnd } = row
  if (isOver(row)) return
  // Until an admin has said the price, nobody can check out.
  if (status === 'pending')
    return basePrice === null
      ? undefined
      : { at: Date.parse(updated) + ABANDONED, trigger: 'checkout abandoned' as const }
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
export function dueOf(row: Subscription, grace: number, asked: number): number | undefined {
  const times = [endOf(row, grace)?.at, isAttached(row) ? asked + HOUR : undefined].filter((at) => at !== undefined)
  return times.length ? Math.min(...times) : undefined
}

const laneOf = (subscription: string) => `${TIME} ${subscription}`

/** Has time bring what it brings, from how the subscription is now. */
export async function arrange(tx: Tx, ctx: Of, row: Subscription) {
  const lane = laneOf(row._id)
  // How long the grace is the job finds out.
  const at = row.status === 'past_due' ? now() : dueOf(row, 0, now())
  const payload: Time = { subscription: row._id, asked: now() }
  if (at === undefined) await discard(tx, lane)
  else await enqueueInstead(ctx, tx, { kind: TIME, lane, payload, at })
}

/** The same where it may have to come earlier than it would. */
export async function rearrange(tx: Tx, ctx: Of, before: Subscription, after: Subscription) {
  if (isOver(after)) return
  const attached = isAttached(after) && !isAttached(before)
  const missed = after.pastDueSince !== null && after.pastDueSince !== before.pastDueSince
  const renewed = after.currentPeriodEnd !== before.currentPeriodEnd
  const ends = after.cancelAtPeriodEnd && (renewed || !before.cancelAtPeriodEnd)
  if (attached || missed || ends) await arrange(tx, ctx, after)
}

/** Has the provider told the price without the discount, once that is over. */
export async function endBenefit(tx: Tx, ctx: Of, { _id, couponBenefitEndsAt }: Subscription) {
  if (!couponBenefitEndsAt) return
  await enqueue(ctx, tx, { kind: REPRICE, payload: { subscription: _id }, at: Date.parse(couponBenefitEndsAt) + 1 })
}

/** Has something end at the provider by which the subscription does not go, or not any more. */
export async function callOff(tx: Tx, ctx: Of, subscription: string, attachment: Attachment, at?: number) {
  if (!isAttached(attachment)) return
  const { providerKind, providerSourceId, externalSubscriptionId, externalCheckoutId } = attachment
  const payload = { subscription, providerKind, providerSourceId, externalSubscriptionId, externalCheckoutId }
  await enqueue(ctx, tx, { kind: CALL_OFF, payload, at })
}
