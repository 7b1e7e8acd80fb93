import { exponentOf } from '../../money'

/** Currencies that Stripe counts otherwise than ISO 4217 does (https://docs.stripe.com/currencies). */
const STRIPE_EXPONENT_BY_CURRENCY: Record<string, number> = { ISK: 2, UGX: 2, MGA: 0 }
const stripeExponentOf = (currency: string) => STRIPE_EXPONENT_BY_CURRENCY[currency] ?? exponentOf(currency)

/** An amount in minor units, as Stripe counts. In currencies of three decimals it takes no thousandths: they are rounded. */
export function toStripeAmount(amount: number, currency: string): number {
  const counted = shiftDecimals(amount, stripeExponentOf(currency) - exponentOf(currency))
  return stripeExponentOf(currency) === 3 ? Math.round(counted / 10) * 10 : counted
}

/** An amount of Stripe's in minor units. */
export const fromStripeAmount = (amount: number, currency: string) =>
  shiftDecimals(amount, exponentOf(currency) - stripeExponentOf(currency))

const shiftDecimals = (amount: number, places: number) =>
  places < 0 ? Math.round(amount / 10 ** -places) : amount * 10 ** places
