import { roundToStep } from '../money'
import type { ProviderKind } from '../tables'
import { paypalAmountStep } from './paypal/amounts'
import { stripeAmountStep } from './stripe/amounts'

/** The steps, in minor units, of the amounts that a provider can hold. */
const STEPS: Record<ProviderKind, (currency: string) => number> = {
  ...{ stripe: stripeAmountStep, paypal: paypalAmountStep, paddle: () => 1 },
}

const stepOf = (kind: ProviderKind | null | undefined, currency: string) => (kind ? STEPS[kind](currency) : 1)

/** Returns whether a provider can hold an amount, in minor units. */
export const holdsAmount = (kind: ProviderKind | null | undefined, minor: number, currency: string) =>
  minor % stepOf(kind, currency) === 0

/** Rounds a computed amount half away from zero to one that the provider can hold. */
export const roundForProvider = (kind: ProviderKind | null | undefined, minor: number, currency: string) =>
  roundToStep(minor, stepOf(kind, currency))
