import { and, eq } from 'drizzle-orm'
import { toIsoString } from '../../core/clock'
import type { Tx } from '../../storage/port'
import { addSpan } from '../billing-period'
import type { Effect } from '../subscriptions/effects'
import { coupons, redemptions, type Subscription } from '../tables'

/** Whether a subscription can redeem its coupon (`left`), has redeemed it, or comes too late. */
export type Redemption = 'left' | 'redeemed' | 'none left'

/** Returns whether a subscription can redeem a coupon. It is so until the end of the transaction, the only writer. */
export async function findRedemption(tx: Tx, subscription: string, coupon: string): Promise<Redemption> {
  const isSameRedemption = and(eq(redemptions.subscription, subscription), eq(redemptions.coupon, coupon))
  if (await tx.select().from(redemptions).where(isSameRedemption).get()) return 'redeemed'
  const row = await tx.select().from(coupons).where(eq(coupons._id, coupon)).get()
  return row && (row.maxRedemptions ?? Number.POSITIVE_INFINITY) > row.currentRedemptions ? 'left' : 'none left'
}

/** Returns what redeems a coupon that is left for a subscription. */
export function redemptionOf(subscription: Subscription, couponId: string, time: number, by?: string): Effect[] {
  const metadata = { couponId, couponCode: subscription.couponCode }
  return [
    { kind: 'redeem coupon', subscription: subscription._id, coupon: couponId, time },
    { kind: 'emit event', subscription, eventName: 'coupon-redeemed', metadata, by },
  ]
}

/** Returns when a discount ends that begins with the current period, else at `time` (ms), or null if it never ends. */
export function benefitEndOf({ discount, currentPeriodStart }: Subscription, time: number): string | null {
  if (!discount?.benefit) return null
  return toIsoString(addSpan(currentPeriodStart ? Date.parse(currentPeriodStart) : time, discount.benefit))
}

export const NO_COUPON = { couponId: null, couponCode: null, discount: null, couponBenefitEndsAt: null }
