import type Stripe from 'stripe'
import { missingPriceProblem } from '../errors'
import { nonEmptyText, parseTime } from '../event-parser'
import type { CheckoutOrder, Provider } from '../provider'
import { attemptKey, ignoreStatuses, ProviderResponseError } from '../provider-http'
import { decodeUtf8, isFresh, toSecretList } from '../webhook-signature'
import { toStripeAmount } from './amounts'
import type { withStripeClient as WithStripeClient } from './client'
import { parseStripeEvent, toProviderState } from './events'
import { rethrowStripeError } from './stripe-errors'
import { idOf, toInvoiceStatus, toProviderInvoice } from './stripe-invoices'

/** Stripe (https://docs.stripe.com/api), through the vendor's package and in its API version. */
export const stripe: Provider<'stripe'> = {
  assertPriceConfigured({ metadata }, { externalIds, billingCycle, dynamic }) {
    const name = priceNames[billingCycle]
    if (metadata.requireExternalPrice && !dynamic && !externalIds[name]) throw missingPriceProblem('stripe', name)
  },

  async createCheckout(connection, order) {
    stripe.assertPriceConfigured?.(connection, order)
    const isEmbedded = connection.metadata.checkoutMode === 'embedded'
    // Stripe refuses a key that was used with other parameters.
    const key = isEmbedded ? `${order.key}:embedded` : order.key
    return withStripeClient(connection, async ({ checkout }) => {
      const createSession = (idempotencyKey: string) =>
        checkout.sessions.create(toSessionParams(order, isEmbedded), { idempotencyKey })
      const first = await createSession(key)
      const { id, url, client_secret } = (await isExpiredReplay(checkout, first))
        ? await createSession(attemptKey(key))
        : first
      const access = nonEmptyText(isEmbedded ? client_secret : url)
      if (!nonEmptyText(id) || !access) throw new ProviderResponseError('stripe', 200, 'no_session')
      const [checkoutUrl, clientToken] = isEmbedded ? [null, access] : [access, null]
      return { checkoutUrl, clientToken, externalCheckoutId: id }
    })
  },

  cancel: (connection, { externalSubscriptionId, externalCheckoutId: checkout }, { unpaidOnly = false } = {}) =>
    withStripeClient(connection, async (client) => {
      // A session that is completed or expired cannot be expired again (400).
      const expired =
        checkout &&
        !externalSubscriptionId &&
        (await ignoreStatuses(
          rethrowStripeError(client.checkout.sessions.expire(checkout, {}, idempotencyOptions('expire', checkout))),
          400,
          404,
        ))
      const id =
        externalSubscriptionId ??
        (checkout && !expired ? await findSubscriptionIdOfSession(client, checkout) : undefined)
      if (id && !externalSubscriptionId && unpaidOnly) return false
      if (id)
        await ignoreStatuses(
          rethrowStripeError(client.subscriptions.cancel(id, {}, idempotencyOptions('cancel', id))),
          404,
        )
      return true
    }),

  findSubscriptionId: (connection, checkout) =>
    withStripeClient(connection, (client) => findSubscriptionIdOfSession(client, checkout)),

  reprice: (connection, subscription, amount) =>
    withStripeClient(connection, async (client) => {
      const { externalSubscriptionId, currency, billingCycle } = subscription
      if (!externalSubscriptionId) return
      const stored = await ignoreStatuses(
        rethrowStripeError(client.subscriptions.retrieve(externalSubscriptionId)),
        404,
      )
      const item = stored?.items?.data[0]
      const product = idOf(item?.price?.product)
      // A subscription that does not exist, or has no price, costs nothing.
      if (!item || !product) return
      const price_data = {
        ...{ currency: currency.toLowerCase(), unit_amount: toStripeAmount(amount, currency) },
        ...{ product, recurring: recurring[billingCycle] },
      }
      if (item.price.unit_amount === price_data.unit_amount) return
      const change: Stripe.SubscriptionUpdateParams = {
        items: [{ id: item.id, price_data }],
        proration_behavior: 'none',
      }
      await client.subscriptions.update(
        externalSubscriptionId,
        change,
        idempotencyOptions('reprice', subscription._id, amount),
      )
    }),

  fetchSubscription: (connection, externalId) =>
    withStripeClient(connection, async (client) => {
      const stored = await ignoreStatuses(rethrowStripeError(client.subscriptions.retrieve(externalId)), 404)
      if (!stored) return
      const invoicePages = client.invoices.list({ subscription: externalId, limit: 100 })
      const listed = await invoicePages.autoPagingToArray({ limit: MAX_INVOICES })
      const invoices = listed.flatMap((invoice) => {
        const status = toInvoiceStatus(invoice)
        return status ? [{ ...toProviderInvoice(invoice), status }] : []
      })
      const { status = 'pending', ...state } = toProviderState(stored)
      const attempts = listed.flatMap(({ status, next_payment_attempt: at }) => (status === 'open' ? (at ?? []) : []))
      const nextPaymentAttempt = attempts.length ? parseTime(Math.max(...attempts)) : undefined
      return { externalSubscriptionId: stored.id, status, ...state, nextPaymentAttempt, invoices }
    }),

  webhookSecrets: ({ authentication }) => toSecretList(authentication.webhookSecret),

  async verifyWebhook({ authentication }, raw, headers) {
    const [text, header] = [decodeUtf8(raw), headers.get('stripe-signature')]
    if (!text || !header || !isFresh(Number(/(?:^|,)t=(\d+)/.exec(header)?.[1]))) return false
    const { isSigned } = await loadClient()
    return toSecretList(authentication.webhookSecret).some((secret) => isSigned(text, header, secret))
  },

  parseEvent: parseStripeEvent,
}

// The vendor's package is loaded on first use, so as not to delay the start of the server.
const loadClient = () => import('./client')

const withStripeClient: typeof WithStripeClient = async (connection, work) =>
  (await loadClient()).withStripeClient(connection, work)

/** Returns whether a session was created under the same key before, and has expired since. */
async function isExpiredReplay(
  { sessions }: Stripe['checkout'],
  { id, lastResponse }: Stripe.Response<Stripe.Checkout.Session>,
) {
  if (!new Headers(lastResponse.headers).has('idempotent-replayed')) return false
  return (await rethrowStripeError(sessions.retrieve(id))).status === 'expired'
}

/** The limit of invoices that are read of a subscription: more than monthly billing ever reaches. */
const MAX_INVOICES = 10_000

// Stripe repeats the answer of a key for a day at least (https://docs.stripe.com/api/idempotent_requests).
const idempotencyOptions = (verb: string, ...parts: unknown[]) => ({ idempotencyKey: attemptKey(verb, ...parts) })

const findSubscriptionIdOfSession = async (client: Stripe, checkout: string) =>
  idOf((await ignoreStatuses(rethrowStripeError(client.checkout.sessions.retrieve(checkout)), 404))?.subscription)

const priceNames = { monthly: 'monthlyPriceId', yearly: 'yearlyPriceId' } as const
const recurring = { monthly: { interval: 'month' }, yearly: { interval: 'year' } } as const

function toSessionParams(order: CheckoutOrder, isEmbedded: boolean): Stripe.Checkout.SessionCreateParams {
  const { subscriptionId, metadata, customer, successUrl, cancelUrl } = order
  return {
    mode: 'subscription',
    line_items: [{ quantity: 1, ...toPriceItem(order) }],
    client_reference_id: subscriptionId,
    metadata,
    subscription_data: { metadata },
    ...(customer.email && { customer_email: customer.email }),
    ...(isEmbedded ? embeddedParams(successUrl) : { success_url: successUrl, cancel_url: cancelUrl }),
  }
}

const embeddedParams = (returnUrl: string | undefined) =>
  ({
    ui_mode: 'embedded_page',
    ...(returnUrl ? { return_url: returnUrl } : { redirect_on_completion: 'never' }),
  }) as const

/** Returns the price that exists at Stripe, or a new one for another amount. */
function toPriceItem({ externalIds, billingCycle, isPlanPrice, amount, currency, planName }: CheckoutOrder) {
  const price = externalIds[priceNames[billingCycle]]
  if (price && isPlanPrice) return { price }
  const product = externalIds.productId ? { product: externalIds.productId } : { product_data: { name: planName } }
  const unit_amount = toStripeAmount(amount, currency)
  return {
    price_data: { currency: currency.toLowerCase(), unit_amount, recurring: recurring[billingCycle], ...product },
  }
}
