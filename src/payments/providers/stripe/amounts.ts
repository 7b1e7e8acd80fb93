import { exponentOf, roundToStep } from '../../money'

/** Currencies with other minor units at Stripe than in ISO 4217 (https://docs.stripe.com/currencies). */
const STRIPE_EXPONENT_BY_CURRENCY: Record<string, number> = { ISK: 2, UGX: 2, MGA: 0 }
const stripeExponentOf = (currency: string) => STRIPE_EXPONENT_BY_CURRENCY[currency] ?? exponentOf(currency)

/** Returns the step of amounts at Stripe, in minor units. Of three decimals, the last one must be 0. */
export const stripeAmountStep = (currency: string) =>
  stripeExponentOf(currency) === 3 ? 10 : 10 ** Math.max(0, exponentOf(currency) - stripeExponentOf(currency))

/** Converts minor units to units of Stripe. */
export const toStripeAmount = (amount: number, currency: string) =>
  shiftDecimals(roundToStep(amount, stripeAmountStep(currency)), stripeExponentOf(currency) - exponentOf(currency))

/** Returns an amount of Stripe in minor units. */
export const fromStripeAmount = (amount: number, currency: string) =>
  shiftDecimals(amount, exponentOf(currency) - stripeExponentOf(currency))

const shiftDecimals = (amount: number, places: number) =>
  places < 0 ? Math.round(amount / 10 ** -places) : amount * 10 ** places
