import type Stripe from 'stripe'
import { parseRetryAfter } from '../../../core/retry-after'
import { ProviderResponseError } from '../provider-http'

type StripeError = InstanceType<typeof Stripe.errors.StripeError> & { detail?: unknown }

/** Returns the result of `work`. @throws ProviderResponseError with the code of Stripe (https://docs.stripe.com/api/errors) */
export const rethrowStripeError = <T>(work: Promise<T>): Promise<T> =>
  work.catch((error: StripeError) => {
    // The package wraps what our HTTP client throws.
    if (error.detail instanceof ProviderResponseError) throw error.detail
    if (!error.type?.startsWith('Stripe') || !error.statusCode) throw error
    const wait = parseRetryAfter(error.headers?.['retry-after'])
    throw new ProviderResponseError('stripe', error.statusCode, error.code ?? error.type, wait)
  })
