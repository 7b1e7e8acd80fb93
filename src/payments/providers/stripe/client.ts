import Stripe from 'stripe'
import type { ResolvedConnection } from '../../../connections/kinds/index'
import { joinUrl } from '../../../connections/kinds/probe'
import { now } from '../../../core/clock'
import { callProvider, ProviderResponseError, requestObject } from '../provider-http'
import { hmac, SIGNATURE_TOLERANCE_SECONDS } from '../webhook-signature'
import { rethrowStripeError } from './stripe-errors'

const STRIPE_API_URL = 'https://api.stripe.com'

/** Runs `work` with the vendor's client, whose requests go through our HTTP client. @throws 502 PROVIDER_ERROR */
export function withStripeClient<T>(
  connection: ResolvedConnection<'stripe'>,
  work: (client: Stripe) => Promise<T>,
): Promise<T> {
  const { metadata, authentication } = connection
  const base = metadata.apiUrl ?? STRIPE_API_URL
  const send = (url: string | URL | Request, init: RequestInit = {}) =>
    requestObject(connection, joinUrl(base, `${url}`.slice(STRIPE_API_URL.length)), init)
  const guardedFetch: typeof fetch = Object.assign(send, { preconnect: fetch.preconnect })
  return callProvider('stripe', () => {
    if (!authentication.secretKey) throw new ProviderResponseError('stripe', 401, 'no_secret_key')
    const httpClient = Stripe.createFetchHttpClient(guardedFetch)
    const client = new Stripe(authentication.secretKey, { httpClient, maxNetworkRetries: 0, telemetry: false })
    return rethrowStripeError(work(client))
  })
}

/** Computes signatures synchronously, in a few microseconds; the package's default is asynchronous. */
class HmacProvider extends Stripe.CryptoProvider {
  override computeHMACSignature = (payload: string, secret: string) => hmac(secret, payload)
}
const hmacProvider = new HmacProvider()

/** Returns whether a `Stripe-Signature` header (https://docs.stripe.com/webhooks#verify-manually) is valid for a secret. */
export function isSigned(text: string, header: string, secret: string) {
  try {
    return Stripe.webhooks.signature!.verifyHeader(
      text,
      header,
      secret,
      SIGNATURE_TOLERANCE_SECONDS,
      hmacProvider,
      now(),
    )
  } catch (error) {
    if (error instanceof Stripe.errors.StripeSignatureVerificationError) return false
    throw error
  }
}
