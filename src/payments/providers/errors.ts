import { Problem } from '../../core/problem'
import type { ProviderKind } from './provider'

const DEFAULT_WAIT_MS = 10_000

const headersOfWait = (ms: number) => ({ 'retry-after': `${Math.max(1, Math.ceil(ms / 1_000))}` })

/**
 * Returns the problem of a failed request to a provider: 503 PROVIDER_BUSY where the provider asks to wait, else 502
 * PROVIDER_ERROR. Both have a `Retry-After` if repeating may help. The cause is for the log only.
 */
export function toProviderProblem(kind: ProviderKind, cause: unknown): Problem {
  const { status, retryAfter = DEFAULT_WAIT_MS }: { status?: number; retryAfter?: number } =
    cause instanceof Error ? (cause as Partial<ProviderFailure>) : {}
  if (status === 429 || status === 503) {
    const headers = headersOfWait(retryAfter)
    const message = `The payment provider (${kind}) has too much to do. Try again in ${headers['retry-after']} s.`
    return new Problem(503, 'PROVIDER_BUSY', message, { cause, headers })
  }
  const isRefusal = status !== undefined && status < 500
  return new Problem(
    502,
    'PROVIDER_ERROR',
    `The payment provider (${kind}) failed to process the request. Try again later.`,
    { cause, ...(!isRefusal && { headers: headersOfWait(DEFAULT_WAIT_MS) }) },
  )
}
type ProviderFailure = { status: number; retryAfter: number }

/** Returns whether an error is a problem that a provider caused. */
export const isProviderProblem = (error: unknown): error is Problem =>
  error instanceof Problem && (error.code === 'PROVIDER_ERROR' || error.code === 'PROVIDER_BUSY')

/** Returns how long the provider that caused a problem asks to wait (ms), or undefined if it does not say so. */
export const providerWait = ({ more: { cause } }: Problem): number | undefined =>
  cause instanceof Error ? (cause as Partial<ProviderFailure>).retryAfter : undefined

/** Returns the problem of a plan that has no price for the billing cycle at a provider (400). */
export const missingPriceProblem = (kind: ProviderKind, name: string) =>
  new Problem(
    400,
    'MISSING_EXTERNAL_PRICE_ID',
    `The plan has no price at ${kind} yet. Set its externalIds.${kind}.${name} first.`,
  )
