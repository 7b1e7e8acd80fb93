import { Problem } from '../../core/problem'
import type { ProviderKind } from './provider'

/** Returns the problem of a failed request to a provider (502). The cause is for the log only. */
export const providerErrorProblem = (kind: ProviderKind, cause: unknown) =>
  new Problem(502, 'PROVIDER_ERROR', `The payment provider (${kind}) failed to process the request. Try again later.`, {
    cause,
  })

/** Returns the problem of a plan that has no price for the billing cycle at a provider (400). */
export const missingPriceProblem = (kind: ProviderKind, name: string) =>
  new Problem(
    400,
    'MISSING_EXTERNAL_PRICE_ID',
    `The plan has no price at ${kind} yet. Set its externalIds.${kind}.${name} first.`,
  )
