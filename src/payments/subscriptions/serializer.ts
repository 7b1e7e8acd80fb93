import { now } from '../../core/clock'
import { applyDiscount, fromMinorUnits } from '../money'
import type { Subscription as SubscriptionResponse } from '../shapes'
import type { Subscription } from '../tables'
import { shownStatus } from './transitions'

/** Returns the price (minor units) of a cycle that begins `at` a time (ms), with any discount; null while it is not set. */
export function priceOf(
  { basePrice, discount, couponBenefitEndsAt }: Pick<Subscription, 'basePrice' | 'discount' | 'couponBenefitEndsAt'>,
  at = now(),
): number | null {
  const isBenefitOver = couponBenefitEndsAt !== null && at > Date.parse(couponBenefitEndsAt)
  return basePrice === null ? null : isBenefitOver ? basePrice : applyDiscount(basePrice, discount)
}

/** Serializes a subscription for the API, without internal fields. */
export function toSubscription({
  discount,
  pastDueSince,
  externalCheckoutId,
  drift,
  endedBy,
  periodAnchor,
  conflict,
  ...row
}: Subscription): SubscriptionResponse {
  const { checkoutUntil: _, checkoutAmount: __, failedCheckouts: ___, lastEventAt: ____, ...fields } = row
  const decimal = (minor: number | null) => (minor === null ? null : fromMinorUnits(minor, row.currency))
  const finalPrice = decimal(priceOf({ ...row, discount }))
  const status = shownStatus(row)
  return {
    ...fields,
    ...(conflict && { conflict }),
    status,
    basePrice: decimal(row.basePrice),
    finalPrice,
    dynamicAmount: decimal(row.dynamicAmount),
  }
}
