import { and, eq, isNull, lt, or, sql } from 'drizzle-orm'
import { iso, now } from '../../core/clock'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { after } from '../periods'
import { note } from '../subscriptions/telling'
import { coupons, redemptions, type Subscription } from '../tables'

/**
 * Redeems the coupon of a subscription, once, by one conditional update: of any number at a time the last redemption goes
 * to one.
 */
export async function redeem(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  row: Subscription & { couponId: string },
  by?: string,
): Promise<'now' | 'before' | 'none left'> {
  const { _id: subscription, couponId: coupon, couponCode } = row
  const known = and(eq(redemptions.subscription, subscription), eq(redemptions.coupon, coupon))
  if (await tx.select().from(redemptions).where(known).get()) return 'before'
  const left = or(isNull(coupons.maxRedemptions), lt(coupons.currentRedemptions, coupons.maxRedemptions))
  const taken = await tx
    .update(coupons)
    .set({ currentRedemptions: sql`${coupons.currentRedemptions} + 1` })
    .where(and(eq(coupons._id, coupon), left))
    .returning({ _id: coupons._id })
  if (!taken.length) return 'none left'
  await tx.insert(redemptions).values({ subscription, coupon, created: iso(now()) })
  await note(ctx, tx, row, 'coupon-redeemed', { couponId: coupon, couponCode }, by)
  return 'now'
}

/** Until when a discount lasts that begins with the current period; null for as long as the subscription does. */
export function benefitEndOf({ discount, currentPeriodStart }: Subscription): string | null {
  if (!discount?.benefit) return null
  return iso(after(currentPeriodStart ? Date.parse(currentPeriodStart) : now(), discount.benefit))
}

/** A subscription whose coupon was redeemed; or without it, where somebody else had the last redemption meanwhile. */
export async function redeemed(tx: Tx, ctx: Pick<Tenant, 'tenant'>, subscription: Subscription): Promise<Subscription> {
  const { couponId, couponCode } = subscription
  if (couponId === null) return subscription
  const done = await redeem(tx, ctx, { ...subscription, couponId })
  if (done === 'before') return subscription
  if (done === 'now') return { ...subscription, couponBenefitEndsAt: benefitEndOf(subscription) }
  await note(ctx, tx, subscription, 'coupon-lost', { couponId, couponCode })
  return { ...subscription, ...withoutCoupon }
}

export const withoutCoupon = { couponId: null, couponCode: null, discount: null, couponBenefitEndsAt: null }
