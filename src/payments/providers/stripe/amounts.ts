import { exponentOf } from '../../money'

/** Currencies that Stripe counts otherwise than ISO 4217 does (https://docs.stripe.com/currencies). */
const EXPONENTS: Record<string, number> = { ISK: 2, UGX: 2, MGA: 0 }
const exponentAt = (currency: string) => EXPONENTS[currency] ?? exponentOf(currency)

/** An amount in minor units, as Stripe counts. In currencies of three decimals it takes no thousandths: they are rounded. */
export function toStripe(amount: number, currency: string): number {
  const counted = scaled(amount, exponentAt(currency) - exponentOf(currency))
  return exponentAt(currency) === 3 ? Math.round(counted / 10) * 10 : counted
}

/** An amount of Stripe's in minor units. */
export const fromStripe = (amount: number, currency: string) =>
  scaled(amount, exponentOf(currency) - exponentAt(currency))

const scaled = (amount: number, places: number) =>
  places < 0 ? Math.round(amount / 10 ** -places) : amount * 10 ** places
