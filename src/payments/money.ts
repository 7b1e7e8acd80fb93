import { CURRENCIES, exponentOf } from '../core/currencies'

/** Amounts are integers in the smallest unit of their currency (minor units). Only the API has decimals. */

const KNOWN_CURRENCIES = new Set(CURRENCIES)

/** The largest amount, in minor units: a JSON number keeps these 15 digits whatever the exponent is. */
export const MAX_MINOR_AMOUNT = 999_999_999_999_999

export { exponentOf }

/** Returns a currency code in the form of ISO 4217, or undefined for an unknown one. */
export function parseCurrency(text: unknown): string | undefined {
  const code = typeof text === 'string' ? text.trim().toUpperCase() : ''
  return KNOWN_CURRENCIES.has(code) ? code : undefined
}

/**
 * Returns an amount of the API in minor units. It is rounded half away from zero by its decimal digits (1.005 becomes 1.01).
 * Returns undefined for what is no finite number, or exceeds `MAX_MINOR_AMOUNT`.
 */
export function toMinorUnits(amount: unknown, currency: string): number | undefined {
  if (typeof amount !== 'number' || !Number.isFinite(amount)) return
  if (Math.abs(amount) > MAX_MINOR_AMOUNT) return
  const { digits, scale } = parseDecimal(amount)
  const minor = Number(divideRounded(digits * 10n ** BigInt(exponentOf(currency)), 10n ** BigInt(scale)))
  return Math.abs(minor) > MAX_MINOR_AMOUNT ? undefined : minor
}

/** Returns an amount of the API in minor units, or undefined unless the currency can hold it exactly. */
export function toExactMinorUnits(amount: unknown, currency: string): number | undefined {
  const minor = toMinorUnits(amount, currency)
  if (minor === undefined) return
  const { digits, scale } = parseDecimal(amount as number)
  return digits * 10n ** BigInt(exponentOf(currency)) === BigInt(minor) * 10n ** BigInt(scale) ? minor : undefined
}

/** Rounds minor units half away from zero to a multiple of `step`. */
export const roundToStep = (minor: number, step: number) =>
  step === 1 ? minor : Number(divideRounded(BigInt(minor), BigInt(step))) * step

/** Returns an amount in units of the currency, as the API shows it. */
export const fromMinorUnits = (minor: number, currency: string) => minor / 10 ** exponentOf(currency)

/** A discount: per cent (0 to 100, with any decimals), or an amount in minor units. */
export type Discount = { type: 'percentage'; percent: number } | { type: 'fixed'; amount: number }

/** Returns a price after a discount, in minor units, at least 0. Percentages are rounded half away from zero. */
export function applyDiscount(price: number, discount: Discount | null): number {
  if (!discount) return price
  if (discount.type === 'fixed') return Math.max(0, price - discount.amount)
  const { digits, scale } = parseDecimal(discount.percent)
  const hundredPercent = 100n * 10n ** BigInt(scale)
  return Math.max(0, Number(divideRounded(BigInt(price) * (hundredPercent - digits), hundredPercent)))
}

/** Parses the decimal notation of a finite number: its value is `digits / 10 ** scale`. */
function parseDecimal(value: number): { digits: bigint; scale: number } {
  const [mantissa = '', power = '0'] = String(value).split('e')
  const [integerPart = '', fraction = ''] = mantissa.split('.')
  const scale = fraction.length - Number(power)
  const digits = BigInt(integerPart + fraction)
  return scale < 0 ? { digits: digits * 10n ** BigInt(-scale), scale: 0 } : { digits, scale }
}

/** Divides and rounds half away from zero. `by` is positive. */
function divideRounded(value: bigint, by: bigint): bigint {
  const size = value < 0n ? -value : value
  const rounded = (2n * size + by) / (2n * by)
  return value < 0n ? -rounded : rounded
}
