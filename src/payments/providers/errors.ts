import { Problem } from '../../core/problem'
import type { ProviderKind } from './provider'

/** The provider did not do what it was asked for (502). What it said goes to the log only. */
export const providerErrorProblem = (kind: ProviderKind, cause: unknown) =>
  new Problem(502, 'PROVIDER_ERROR', `The payment provider (${kind}) failed to process the request. Try again later.`, {
    cause,
  })

/** The plan has no price there that fits the cycle (400). */
export const missingPriceProblem = (kind: ProviderKind, name: string) =>
  new Problem(
    400,
    'MISSING_EXTERNAL_PRICE_ID',
    `The plan has no price at ${kind} yet. Set its externalIds.${kind}.${name} first.`,
  )
