import { now } from '../../core/clock'
import { applyDiscount, fromMinorUnits } from '../money'
import type { Subscription as SubscriptionResponse } from '../shapes'
import type { Subscription } from '../tables'

/** What a cycle that begins now costs, in minor units: with the discount for as long as it lasts; null while nobody knows. */
export function priceOf(
  { basePrice, discount, couponBenefitEndsAt }: Pick<Subscription, 'basePrice' | 'discount' | 'couponBenefitEndsAt'>,
  at = now(),
): number | null {
  const isBenefitOver = couponBenefitEndsAt !== null && at > Date.parse(couponBenefitEndsAt)
  return basePrice === null ? null : isBenefitOver ? basePrice : applyDiscount(basePrice, discount)
}

/** A subscription as the wire has it, without what is only for us. */
export function toSubscription({
  discount,
  pastDueSince,
  externalCheckoutId,
  drift,
  ...row
}: Subscription): SubscriptionResponse {
  const { checkoutUntil: _, checkoutAmount: __, failedCheckouts: ___, lastEventAt: ____, ...fields } = row
  const decimal = (minor: number | null) => (minor === null ? null : fromMinorUnits(minor, row.currency))
  const finalPrice = decimal(priceOf({ ...row, discount }))
  return { ...fields, basePrice: decimal(row.basePrice), finalPrice, dynamicAmount: decimal(row.dynamicAmount) }
}
