import { exponentOf } from '../../money'

/** Currencies with other minor units at Stripe than in ISO 4217 (https://docs.stripe.com/currencies). */
const STRIPE_EXPONENT_BY_CURRENCY: Record<string, number> = { ISK: 2, UGX: 2, MGA: 0 }
const stripeExponentOf = (currency: string) => STRIPE_EXPONENT_BY_CURRENCY[currency] ?? exponentOf(currency)

/** Converts minor units to units of Stripe, which requires the last of three decimals to be 0, so it is rounded. */
export function toStripeAmount(amount: number, currency: string): number {
  const counted = shiftDecimals(amount, stripeExponentOf(currency) - exponentOf(currency))
  return stripeExponentOf(currency) === 3 ? Math.round(counted / 10) * 10 : counted
}

/** Returns an amount of Stripe in minor units. */
export const fromStripeAmount = (amount: number, currency: string) =>
  shiftDecimals(amount, exponentOf(currency) - stripeExponentOf(currency))

const shiftDecimals = (amount: number, places: number) =>
  places < 0 ? Math.round(amount / 10 ** -places) : amount * 10 ** places
