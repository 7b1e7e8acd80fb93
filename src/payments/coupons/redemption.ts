import { and, eq, isNull, lt, or, sql } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { addSpan } from '../billing-period'
import { emitSubscriptionEvent } from '../subscriptions/subscription-events'
import { coupons, redemptions, type Subscription } from '../tables'

/**
 * Redeems the coupon of a subscription once. A single conditional update makes sure that only one of many concurrent callers
 * gets the last redemption. Returns whether it was redeemed now, or before, or had no redemptions left.
 */
export async function redeem(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  row: Subscription & { couponId: string },
  by?: string,
): Promise<'now' | 'before' | 'none left'> {
  const { _id: subscription, couponId: coupon, couponCode } = row
  const isSameRedemption = and(eq(redemptions.subscription, subscription), eq(redemptions.coupon, coupon))
  if (await tx.select().from(redemptions).where(isSameRedemption).get()) return 'before'
  const hasRedemptionsLeft = or(isNull(coupons.maxRedemptions), lt(coupons.currentRedemptions, coupons.maxRedemptions))
  const updated = await tx
    .update(coupons)
    .set({ currentRedemptions: sql`${coupons.currentRedemptions} + 1` })
    .where(and(eq(coupons._id, coupon), hasRedemptionsLeft))
    .returning({ _id: coupons._id })
  if (!updated.length) return 'none left'
  await tx.insert(redemptions).values({ subscription, coupon, created: toIsoString(now()) })
  await emitSubscriptionEvent(ctx, tx, row, 'coupon-redeemed', { couponId: coupon, couponCode }, by)
  return 'now'
}

/** Returns when a discount ends that begins with the current period, or null if it lasts as long as the subscription. */
export function benefitEndOf({ discount, currentPeriodStart }: Subscription): string | null {
  if (!discount?.benefit) return null
  return toIsoString(addSpan(currentPeriodStart ? Date.parse(currentPeriodStart) : now(), discount.benefit))
}

/** Redeems the coupon of a subscription that becomes active. Removes the coupon if it has no redemptions left. */
export async function redeemOnActivation(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  subscription: Subscription,
): Promise<Subscription> {
  const { couponId, couponCode } = subscription
  if (couponId === null) return subscription
  const result = await redeem(tx, ctx, { ...subscription, couponId })
  if (result === 'before') return subscription
  if (result === 'now') return { ...subscription, couponBenefitEndsAt: benefitEndOf(subscription) }
  await emitSubscriptionEvent(ctx, tx, subscription, 'coupon-lost', { couponId, couponCode })
  return { ...subscription, ...NO_COUPON }
}

export const NO_COUPON = { couponId: null, couponCode: null, discount: null, couponBenefitEndsAt: null }
