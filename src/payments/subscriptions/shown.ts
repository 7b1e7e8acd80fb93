import { now } from '../../core/clock'
import { decimalFrom, discounted } from '../money'
import type { Subscription as Told } from '../shapes'
import type { Subscription } from '../tables'

/** What a cycle that begins now costs, in minor units: with the discount for as long as it lasts; null while nobody knows. */
export function priceOf(
  { basePrice, discount, couponBenefitEndsAt }: Pick<Subscription, 'basePrice' | 'discount' | 'couponBenefitEndsAt'>,
  at = now(),
): number | null {
  const over = couponBenefitEndsAt !== null && at > Date.parse(couponBenefitEndsAt)
  return basePrice === null ? null : over ? basePrice : discounted(basePrice, discount)
}

/** A subscription as the wire has it, without what is only for us. */
export function shown({ discount, pastDueSince, externalCheckoutId, drift, ...row }: Subscription): Told {
  const { checkoutUntil: _, checkoutAmount: __, failedCheckouts: ___, lastEventAt: ____, ...told } = row
  const decimal = (minor: number | null) => (minor === null ? null : decimalFrom(minor, row.currency))
  const finalPrice = decimal(priceOf({ ...row, discount }))
  return { ...told, basePrice: decimal(row.basePrice), finalPrice, dynamicAmount: decimal(row.dynamicAmount) }
}
