import type { Opened } from '../../plugins/connections/kinds'
import { joined } from '../../plugins/connections/kinds/asking'
import { PADDLE } from '../../plugins/connections/kinds/paddle'
import { attempt, by, type Question, Refusal, reachJson, unlessGone } from './asking'
import { missingPrice } from './failure'
import { eventOf, invoiceOf, type PaddleSubscription, type PaddleTransaction, standingOf } from './paddle/events'
import type { Order, Provider } from './provider'
import { agree, hmac, isLately, named, secretsOf } from './signed'

type Connected = Opened<'paddle'>

/**
 * https://developer.paddle.com/api-reference. The vendor's package asks by itself, past the guard of `outside`, and takes
 * webhooks of five seconds' age at most and one signature of several: it serves in tests only, to read what we read.
 */
export const paddle: Provider<'paddle'> = {
  refuse(_, { externalIds, billingCycle, dynamic }) {
    const name = priceNames[billingCycle]
    if (!dynamic && !externalIds[name]) throw missingPrice('paddle', name)
  },

  async createCheckout(opened, order) {
    paddle.refuse?.(opened, order)
    return by('paddle', async () => {
      const { metadata: custom_data, currency: currency_code } = order
      const json = { items: [{ quantity: 1, ...priceOf(order) }], custom_data, currency_code }
      // Paddle does not say that it knows keys: what is asked for again later may be over, so it is another.
      const made = await answered<PaddleTransaction & { checkout?: { url?: string | null } | null }>(
        ...[opened, 'transactions', { method: 'POST', key: attempt(order.key), json }],
      )
      const id = named(made.id)
      if (!id) throw new Refusal('paddle', 200, 'no_transaction')
      return { checkoutUrl: named(made.checkout?.url) ?? null, clientToken: id, externalCheckoutId: id }
    })
  },

  cancel: (opened, { externalSubscriptionId, externalCheckoutId: checkout }) =>
    by('paddle', async () => {
      let id = externalSubscriptionId ?? undefined
      if (!id && checkout) {
        // One that is paid, or over, can't be called off any more.
        const question = { method: 'PATCH', key: attempt('cancel', checkout), json: { status: 'canceled' } }
        const canceled = await unlessGone(answered(opened, transactionPath(checkout), question), 400, 404, 409)
        if (!canceled) id = await madeBy(opened, checkout)
      }
      if (!id) return true
      const question = { method: 'POST', key: attempt('cancel', id), json: { effective_from: 'immediately' } }
      const done = answered(opened, `subscriptions/${encodeURIComponent(id)}/cancel`, question)
      await done.catch((error) => unlessEnded(opened, id, error))
      return true
    }),

  subscriptionOf: (opened, checkout) => by('paddle', () => madeBy(opened, checkout)),

  reprice: (opened, subscription, amount) =>
    by('paddle', async () => {
      const { _id, externalSubscriptionId: id, currency } = subscription
      if (!id) return
      const path = `subscriptions/${encodeURIComponent(id)}`
      const [item] = (await fetched(opened, id))?.items ?? []
      // What is not there, or has no price there, nobody pays for.
      if (!item?.price?.product_id) return
      const { product_id, description, unit_price } = item.price
      if (unit_price?.amount === `${amount}`) return
      const price = { product_id, description: description ?? 'Subscription', unit_price: moneyOf(amount, currency) }
      const items = [{ quantity: item.quantity ?? 1, price }]
      const json = { items, proration_billing_mode: 'do_not_bill' }
      await answered(opened, path, { method: 'PATCH', key: attempt('reprice', _id, amount), json })
    }),

  fetchSubscription: (opened, externalId) =>
    by('paddle', async () => {
      const found = await fetched(opened, externalId)
      if (!found) return
      const invoices = (await transactionsOf(opened, externalId)).flatMap((transaction) => {
        const status = INVOICES[transaction.status ?? '']
        return status ? [{ ...invoiceOf(transaction), status }] : []
      })
      const { status = 'pending', ...standing } = standingOf(found)
      return { externalSubscriptionId: externalId, status, ...standing, invoices }
    }),

  webhookSecrets: ({ authentication }) => secretsOf(authentication.webhookSecret),

  async verifyWebhook({ authentication }, raw, headers) {
    const { ts, h1 } = signatureIn(headers.get('paddle-signature') ?? '')
    if (!ts || !isLately(Number(ts))) return false
    const good = secretsOf(authentication.webhookSecret).map((secret) => hmac(secret, `${ts}:`, raw))
    return h1.some((told) => good.some((one) => agree(one, told)))
  },

  parseEvent: eventOf,
}

const priceNames = { monthly: 'monthlyPriceId', yearly: 'yearlyPriceId' } as const
const intervals = { monthly: 'month', yearly: 'year' } as const

/** Paddle counts in minor units, as ISO 4217 has them. */
const moneyOf = (amount: number, currency: string) => ({ amount: `${amount}`, currency_code: currency })

/** The price that Paddle knows, or one made for what is paid here: an amount of its own, or less by a coupon of ours. */
function priceOf({ externalIds, billingCycle, dynamic, discount, amount, currency, planName }: Order) {
  const price_id = externalIds[priceNames[billingCycle]]
  if (price_id && !dynamic && !discount) return { price_id }
  const { productId } = externalIds
  return {
    price: {
      description: `${planName} (${billingCycle})`,
      name: planName.slice(0, 150),
      unit_price: moneyOf(amount, currency),
      billing_cycle: { interval: intervals[billingCycle], frequency: 1 },
      quantity: { minimum: 1, maximum: 1 },
      ...(productId
        ? { product_id: productId }
        : { product: { name: planName.slice(0, 200), tax_category: STANDARD } }),
    },
  }
}
const STANDARD = 'standard'

type Asking = { method?: string; key?: string; json?: unknown }

/** @throws Unreachable, Refusal */
const answered = async <Data>(opened: Connected, path: string, asking?: Asking): Promise<Data> =>
  (await wholeAnswer<Data>(opened, path, asking)).data

async function wholeAnswer<Data>(
  opened: Connected,
  path: string,
  { key, method = 'GET', json }: Asking = {},
): Promise<{ data: Data; meta?: { pagination?: { has_more?: boolean } } }> {
  const { metadata, authentication } = opened
  if (!authentication.apiKey) throw new Refusal('paddle', 401, 'no_api_key')
  const { environment = 'live', apiUrl = PADDLE[environment] } = metadata
  const headers: Question['headers'] = { authorization: `Bearer ${authentication.apiKey}`, 'paddle-version': '1' }
  if (key) headers['idempotency-key'] = key
  type Refused = { error?: { code?: string } }
  const codeIn = ({ error }: Refused) => error?.code
  return reachJson(opened, joined(apiUrl, path), { method, headers, json }, codeIn)
}

const PAGES = 300
const PER_PAGE = '30' // more it does not give

/** All of a subscription, page by page (https://developer.paddle.com/api-reference/about/pagination). */
async function transactionsOf(opened: Connected, subscription_id: string): Promise<PaddleTransaction[]> {
  const found: PaddleTransaction[] = []
  for (let page = 0; page < PAGES; page++) {
    const after = found.at(-1)?.id
    const query = new URLSearchParams({ subscription_id, per_page: PER_PAGE, ...(after && { after }) })
    const { data, meta } = await wholeAnswer<PaddleTransaction[]>(opened, `transactions?${query}`)
    found.push(...data)
    if (!data.length || !meta?.pagination?.has_more) break
  }
  return found
}

const transactionPath = (id: string) => `transactions/${encodeURIComponent(id)}`

const madeBy = async (opened: Connected, checkout: string) =>
  named((await unlessGone(answered<PaddleTransaction>(opened, transactionPath(checkout)), 404))?.subscription_id)

const fetched = (opened: Connected, id: string) =>
  unlessGone(answered<PaddleSubscription>(opened, `subscriptions/${encodeURIComponent(id)}`), 404)

/** What is over can't be ended again, which Paddle says by many codes. */
async function unlessEnded(opened: Connected, id: string, error: unknown) {
  if (!(error instanceof Refusal) || error.status >= 500) throw error
  const found = error.status === 404 ? undefined : await fetched(opened, id)
  if (found && found.status !== 'canceled') throw error
}

const INVOICES: Record<string, 'paid' | 'open' | 'void'> = {
  ...{ completed: 'paid', paid: 'paid', past_due: 'open', billed: 'open', canceled: 'void' },
}

/** `ts=…;h1=…`, with a further `h1` while one secret takes the place of another. */
function signatureIn(header: string) {
  const parts = header.split(';').map((part) => part.trim().split('='))
  const of = (name: string) => parts.flatMap(([key, value]) => (key === name && value ? [value] : []))
  const [ts] = of('ts')
  return { ts: ts && /^\d{1,12}$/.test(ts) ? ts : undefined, h1: of('h1').slice(0, 5) }
}
