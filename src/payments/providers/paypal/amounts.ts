import { exponentOf, roundToStep } from '../../money'

/** Currencies without decimals at PayPal, though ISO 4217 has some (https://developer.paypal.com/reference/currency-codes). */
const CURRENCIES_WITHOUT_DECIMALS = new Set(['HUF', 'TWD'])

export type Money = { currency_code: string; value: string }

/** Returns the step of amounts at PayPal, in minor units. */
export const paypalAmountStep = (currency: string) =>
  CURRENCIES_WITHOUT_DECIMALS.has(currency) ? 10 ** exponentOf(currency) : 1

/** Returns an amount (minor units) in the format of PayPal, with the decimals that the currency has there. */
export function toPaypalMoney(amount: number, currency: string): Money {
  const places = exponentOf(currency)
  const decimals = CURRENCIES_WITHOUT_DECIMALS.has(currency) ? 0 : places
  const digits = `${roundToStep(amount, paypalAmountStep(currency)) / 10 ** (places - decimals)}`.padStart(
    decimals + 1,
    '0',
  )
  const value = decimals ? `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}` : digits
  return { currency_code: currency, value }
}

/** Returns an amount of PayPal in minor units, or 0 for an invalid one. */
export function fromPaypalAmount(value: string | undefined, currency: string): number {
  const [, sign, integerPart, fraction = ''] = /^(-?)(\d*)(?:\.(\d*))?$/.exec(value ?? '') ?? []
  const places = exponentOf(currency)
  const minor = Number(`${integerPart ?? ''}${fraction.slice(0, places).padEnd(places, '0')}`)
  return Number.isSafeInteger(minor) ? (sign ? -minor : minor) : 0
}
