import type Stripe from 'stripe'
import { ProviderResponseError } from '../provider-http'

type StripeError = InstanceType<typeof Stripe.errors.StripeError>

/** Returns the result of `work`. @throws ProviderResponseError with the code of Stripe (https://docs.stripe.com/api/errors) */
export const rethrowStripeError = <T>(work: Promise<T>): Promise<T> =>
  work.catch((error: StripeError) => {
    if (!error.type?.startsWith('Stripe') || !error.statusCode) throw error
    throw new ProviderResponseError('stripe', error.statusCode, error.code ?? error.type)
  })
