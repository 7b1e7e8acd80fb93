import { exponentOf } from '../../money'

/** Currencies in which PayPal takes no decimals, though ISO 4217 has some (https://developer.paypal.com/reference/currency-codes). */
const WHOLE = new Set(['HUF', 'TWD'])

export type Money = { currency_code: string; value: string }

/** An amount in minor units, as PayPal writes it: with as many decimals as the currency has there. */
export function toPaypal(amount: number, currency: string): Money {
  const places = exponentOf(currency)
  const kept = WHOLE.has(currency) ? 0 : places
  const digits = `${Math.round(amount / 10 ** (places - kept))}`.padStart(kept + 1, '0')
  const value = kept ? `${digits.slice(0, -kept)}.${digits.slice(-kept)}` : digits
  return { currency_code: currency, value }
}

/** Minor units of what PayPal writes; 0 of what is no amount. */
export function fromPaypal(value: string | undefined, currency: string): number {
  const [, sign, whole, fraction = ''] = /^(-?)(\d*)(?:\.(\d*))?$/.exec(value ?? '') ?? []
  const places = exponentOf(currency)
  const minor = Number(`${whole ?? ''}${fraction.slice(0, places).padEnd(places, '0')}`)
  return Number.isSafeInteger(minor) ? (sign ? -minor : minor) : 0
}
