import type { Coupon, Plan } from '../api/schema'
import { formatMoney } from '../ui/money'

/** How often a customer pays. */
export type Cycle = 'monthly' | 'yearly'

/** The cycles with their words. */
export const CYCLES = [
  { value: 'monthly', label: 'Monthly' },
  { value: 'yearly', label: 'Yearly' },
] as const

const MONTHS_PER_YEAR = 12
const longDate = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' })

/** Returns the day of a time as the locale writes it, in UTC, by which the server bills. */
export const formatDay = (time: string) => longDate.format(Date.parse(time))

/** Returns an amount with how often it is paid, such as "€9.00 a month". */
export const describeAmount = (amount: number, currency: string, cycle: Cycle) =>
  `${formatMoney(amount, currency)} a ${cycle === 'yearly' ? 'year' : 'month'}`

type Price = Pick<Plan, 'monthlyPrice' | 'yearlyPrice' | 'dynamic'> & { currency?: string }

/** Returns what a plan costs in words, such as "€9.00 a month or €90.00 a year, which saves 17 %". */
export function describePlanPrice({ monthlyPrice, yearlyPrice, dynamic, currency = '' }: Price): string {
  if (dynamic) return 'A price of its own for each customer'
  if (monthlyPrice === null || monthlyPrice === undefined) return 'No price yet'
  const monthly = describeAmount(monthlyPrice, currency, 'monthly')
  if (yearlyPrice === null || yearlyPrice === undefined) return monthly
  if (monthlyPrice === 0 && yearlyPrice === 0) return 'Free'
  const saved = monthlyPrice > 0 ? 1 - yearlyPrice / (monthlyPrice * MONTHS_PER_YEAR) : 0
  const saving = saved >= 0.01 ? `, which saves ${Math.round(saved * 100)} %` : ''
  return `${monthly} or ${describeAmount(yearlyPrice, currency, 'yearly')}${saving}`
}

type Discount = Pick<Coupon, 'discountType' | 'discountValue' | 'currency'>

/** Returns what a coupon takes off, such as "25 % off". */
export const describeDiscount = ({ discountType, discountValue, currency }: Discount) =>
  discountType === 'percentage' ? `${discountValue} % off` : `${formatMoney(discountValue, currency ?? '')} off`

/** Returns how long a discount lasts, such as "for 3 months". */
export function describeBenefit({
  benefitDurationUnit: unit,
  benefitDurationValue: value,
}: Pick<Coupon, 'benefitDurationUnit' | 'benefitDurationValue'>): string {
  if (!unit || !value) return 'as long as the subscription lasts'
  return value === 1 ? `for 1 ${unit.slice(0, -1)}` : `for ${value} ${unit}`
}

/** Returns when a code can be redeemed, or undefined when always. */
export function describeValidity({ validFrom, validUntil }: Pick<Coupon, 'validFrom' | 'validUntil'>) {
  if (validFrom && validUntil) return `${formatDay(validFrom)} to ${formatDay(validUntil)}`
  if (validFrom) return `from ${formatDay(validFrom)}`
  return validUntil ? `until ${formatDay(validUntil)}` : undefined
}
