import type Stripe from 'stripe'
import { attempt, Refusal, unlessGone } from './asking'
import { missingPrice } from './failure'
import type { Order, Provider } from './provider'
import { isLately, named, secretsOf, textOf } from './signed'
import { toStripe } from './stripe/amounts'
import type { asked as Asked } from './stripe/client'
import { eventOf, standingOf } from './stripe/events'
import { idOf, invoiceOf, statusOfInvoice } from './stripe/invoices'
import { refusing } from './stripe/refusing'

/** https://docs.stripe.com/api, by the package of the vendor and in the version that it speaks. */
export const stripe: Provider<'stripe'> = {
  refuse({ metadata }, { externalIds, billingCycle, dynamic }) {
    const name = priceNames[billingCycle]
    if (metadata.requireExternalPrice && !dynamic && !externalIds[name]) throw missingPrice('stripe', name)
  },

  async createCheckout(opened, order) {
    stripe.refuse?.(opened, order)
    return asked(opened, async ({ checkout }) => {
      const begun = (idempotencyKey: string) => checkout.sessions.create(sessionOf(order), { idempotencyKey })
      const first = await begun(order.key)
      const { id, url, client_secret } = (await isOver(checkout, first)) ? await begun(attempt(order.key)) : first
      const way = named(order.embedded ? client_secret : url)
      if (!named(id) || !way) throw new Refusal('stripe', 200, 'no_session')
      const [checkoutUrl, clientToken] = order.embedded ? [null, way] : [way, null]
      return { checkoutUrl, clientToken, externalCheckoutId: id }
    })
  },

  cancel: (opened, { externalSubscriptionId, externalCheckoutId: checkout }) =>
    asked(opened, async (client) => {
      // One that is over, in whichever way, can't be called off any more (400).
      const expired =
        checkout &&
        !externalSubscriptionId &&
        (await unlessGone(refusing(client.checkout.sessions.expire(checkout, {}, keyOf('expire', checkout))), 400, 404))
      const id = externalSubscriptionId ?? (checkout && !expired ? await madeBy(client, checkout) : undefined)
      if (id) await unlessGone(refusing(client.subscriptions.cancel(id, {}, keyOf('cancel', id))), 404)
      return true
    }),

  subscriptionOf: (opened, checkout) => asked(opened, (client) => madeBy(client, checkout)),

  reprice: (opened, subscription, amount) =>
    asked(opened, async (client) => {
      const { externalSubscriptionId, currency, billingCycle } = subscription
      if (!externalSubscriptionId) return
      const found = await unlessGone(refusing(client.subscriptions.retrieve(externalSubscriptionId)), 404)
      const item = found?.items?.data[0]
      const product = idOf(item?.price?.product)
      // What is not there, or has no price there, nobody pays for.
      if (!item || !product) return
      const price_data = {
        ...{ currency: currency.toLowerCase(), unit_amount: toStripe(amount, currency) },
        ...{ product, recurring: recurring[billingCycle] },
      }
      if (item.price.unit_amount === price_data.unit_amount) return
      const change: Stripe.SubscriptionUpdateParams = {
        items: [{ id: item.id, price_data }],
        proration_behavior: 'none',
      }
      await client.subscriptions.update(externalSubscriptionId, change, keyOf('reprice', subscription._id, amount))
    }),

  fetchSubscription: (opened, externalId) =>
    asked(opened, async (client) => {
      const found = await unlessGone(refusing(client.subscriptions.retrieve(externalId)), 404)
      if (!found) return
      const drawnUp = client.invoices.list({ subscription: externalId, limit: 100 })
      const invoices = (await drawnUp.autoPagingToArray({ limit: MOST })).flatMap((invoice) => {
        const status = statusOfInvoice(invoice)
        return status ? [{ ...invoiceOf(invoice), status }] : []
      })
      const { status = 'pending', ...standing } = standingOf(found)
      return { externalSubscriptionId: found.id, status, ...standing, invoices }
    }),

  webhookSecrets: ({ authentication }) => secretsOf(authentication.webhookSecret),

  async verifyWebhook({ authentication }, raw, headers) {
    const [text, header] = [textOf(raw), headers.get('stripe-signature')]
    if (!text || !header || !isLately(Number(/(?:^|,)t=(\d+)/.exec(header)?.[1]))) return false
    const { isSigned } = await client()
    return secretsOf(authentication.webhookSecret).some((secret) => isSigned(text, header, secret))
  },

  parseEvent: eventOf,
}

// A start shall not wait for the package of the vendor: it is loaded by the first who needs it.
const client = () => import('./stripe/client')

const asked: typeof Asked = async (opened, work) => (await client()).asked(opened, work)

/** Whether a session is one that was begun under the same key before, and nobody can pay any more. */
async function isOver(
  { sessions }: Stripe['checkout'],
  { id, lastResponse }: Stripe.Response<Stripe.Checkout.Session>,
) {
  if (!new Headers(lastResponse.headers).has('idempotent-replayed')) return false
  return (await refusing(sessions.retrieve(id))).status === 'expired'
}

/** How many invoices of a subscription are looked at: of a month each, all that there will ever be. */
const MOST = 10_000

const keyOf = (verb: string, ...of: unknown[]) => ({ idempotencyKey: attempt(verb, ...of) })

const madeBy = async (client: Stripe, checkout: string) =>
  idOf((await unlessGone(refusing(client.checkout.sessions.retrieve(checkout)), 404))?.subscription)

const priceNames = { monthly: 'monthlyPriceId', yearly: 'yearlyPriceId' } as const
const recurring = { monthly: { interval: 'month' }, yearly: { interval: 'year' } } as const

function sessionOf(order: Order): Stripe.Checkout.SessionCreateParams {
  const { subscriptionId, metadata, customer, successUrl, cancelUrl } = order
  return {
    mode: 'subscription',
    line_items: [{ quantity: 1, ...priceOf(order) }],
    client_reference_id: subscriptionId,
    metadata,
    subscription_data: { metadata },
    ...(customer.email && { customer_email: customer.email }),
    ...(order.embedded ? embeddedIn(successUrl) : { success_url: successUrl, cancel_url: cancelUrl }),
  }
}

const embeddedIn = (returnUrl: string | undefined) =>
  ({
    ui_mode: 'embedded_page',
    ...(returnUrl ? { return_url: returnUrl } : { redirect_on_completion: 'never' }),
  }) as const

/** The price that Stripe knows, or one made for what is paid here: an amount of its own, or less by a coupon of ours. */
function priceOf({ externalIds, billingCycle, dynamic, discount, amount, currency, planName }: Order) {
  const price = externalIds[priceNames[billingCycle]]
  if (price && !dynamic && !discount) return { price }
  const product = externalIds.productId ? { product: externalIds.productId } : { product_data: { name: planName } }
  const unit_amount = toStripe(amount, currency)
  return {
    price_data: { currency: currency.toLowerCase(), unit_amount, recurring: recurring[billingCycle], ...product },
  }
}
