import { now } from '../../core/clock'
import { applyDiscount, fromMinorUnits } from '../money'
import { roundForProvider } from '../providers/amount-steps'
import type { Subscription as SubscriptionResponse } from '../shapes'
import type { Subscription } from '../tables'
import { shownStatus } from './transitions'

type PricedSubscription = Pick<
  Subscription,
  'basePrice' | 'discount' | 'couponBenefitEndsAt' | 'providerKind' | 'currency'
>

/** Returns the price (minor units) of a cycle that begins `at` a time (ms), with any discount; null while it is not set. */
export function priceOf(
  { basePrice, discount, couponBenefitEndsAt, providerKind, currency }: PricedSubscription,
  at = now(),
): number | null {
  const isBenefitOver = couponBenefitEndsAt !== null && at > Date.parse(couponBenefitEndsAt)
  return basePrice === null
    ? null
    : isBenefitOver
      ? basePrice
      : roundForProvider(providerKind, applyDiscount(basePrice, discount), currency)
}

/**
 * Returns whether a subscription that costs nothing at first is paid when the benefit of its coupon ends. It needs a provider
 * from the start, which asks for the payment method.
 */
export const isPaidLater = (row: Subscription) =>
  !!row.discount?.benefit && !!row.basePrice && applyDiscount(row.basePrice, row.discount) === 0

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
