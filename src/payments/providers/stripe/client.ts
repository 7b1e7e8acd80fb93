import Stripe from 'stripe'
import { now } from '../../../core/clock'
import type { Opened } from '../../../plugins/connections/kinds'
import { joined } from '../../../plugins/connections/kinds/asking'
import { by, Refusal, reachObject } from '../asking'
import { hmac, TOLERANCE } from '../signed'
import { refusing } from './refusing'

const STRIPE = 'https://api.stripe.com'

/** Does something by a client of the vendor, which asks as everything here asks other servers. */
export function asked<T>(opened: Opened<'stripe'>, work: (client: Stripe) => Promise<T>): Promise<T> {
  const { metadata, authentication } = opened
  const base = metadata.apiUrl ?? STRIPE
  const fetching = ((url: string, init: RequestInit) =>
    reachObject(opened, joined(base, url.slice(STRIPE.length)), init)) as unknown as typeof fetch
  return by('stripe', () => {
    if (!authentication.secretKey) throw new Refusal('stripe', 401, 'no_secret_key')
    const httpClient = Stripe.createFetchHttpClient(fetching)
    const client = new Stripe(authentication.secretKey, { httpClient, maxNetworkRetries: 0, telemetry: false })
    return refusing(work(client))
  })
}

/** What the package asks for: without it, it computes what is a few microseconds' work elsewhere, and waits for it. */
class Hmac extends Stripe.CryptoProvider {
  override computeHMACSignature = (payload: string, secret: string) => hmac(secret, payload)
}
const here = new Hmac()

/** Whether a `Stripe-Signature` header (https://docs.stripe.com/webhooks#verify-manually) is of this secret. */
export function isSigned(text: string, header: string, secret: string) {
  try {
    return Stripe.webhooks.signature!.verifyHeader(text, header, secret, TOLERANCE, here, now())
  } catch (error) {
    if (error instanceof Stripe.errors.StripeSignatureVerificationError) return false
    throw error
  }
}
