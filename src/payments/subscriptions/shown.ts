import { now } from '../../core/clock'
import { decimalFrom, discounted } from '../money'
import type { Subscription as Told } from '../shapes'
import type { Subscription } from '../tables'

/** What a cycle that begins now costs, in minor units: with the discount for as long as it lasts; null while nobody knows. */
export function priceOf({ basePrice, discount, couponBenefitEndsAt }: Subscription, at = now()): number | null {
  const over = couponBenefitEndsAt !== null && at > Date.parse(couponBenefitEndsAt)
  return basePrice === null ? null : over ? basePrice : discounted(basePrice, discount)
}

/** A subscription as the wire has it; its shape leaves out what is only for us. */
export function shown(row: Subscription): Told {
  const decimal = (minor: number | null) => (minor === null ? null : decimalFrom(minor, row.currency))
  const prices = { basePrice: row.basePrice, finalPrice: priceOf(row), dynamicAmount: row.dynamicAmount }
  const decimals = Object.entries(prices).map(([name, minor]) => [name, decimal(minor)])
  return { ...row, ...Object.fromEntries(decimals) }
}
