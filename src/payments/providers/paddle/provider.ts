import type { ResolvedConnection } from '../../../connections/kinds/index'
import { PADDLE_URLS } from '../../../connections/kinds/paddle'
import { joinUrl } from '../../../connections/kinds/probe'
import { isTimingSafeEqual } from '../../../core/crypto'
import { missingPriceProblem } from '../errors'
import type { CheckoutOrder, Provider } from '../provider'
import {
  attemptKey,
  callProvider,
  ignoreStatuses,
  type ProviderRequest,
  ProviderResponseError,
  requestJson,
} from '../provider-http'
import { hmac, isFresh, nonEmptyText, toSecretList } from '../webhook-signature'
import {
  type PaddleSubscription,
  type PaddleTransaction,
  parsePaddleEvent,
  toProviderInvoice,
  toProviderState,
} from './events'

type PaddleConnection = ResolvedConnection<'paddle'>

/**
 * https://developer.paddle.com/api-reference. The vendor's package asks by itself, past the guard of `outside`, and takes
 * webhooks of five seconds' age at most and one signature of several: it serves in tests only, to read what we read.
 */
export const paddle: Provider<'paddle'> = {
  assertPriceConfigured(_, { externalIds, billingCycle, dynamic }) {
    const name = priceNames[billingCycle]
    if (!dynamic && !externalIds[name]) throw missingPriceProblem('paddle', name)
  },

  async createCheckout(opened, order) {
    paddle.assertPriceConfigured?.(opened, order)
    return callProvider('paddle', async () => {
      const { metadata: custom_data, currency: currency_code } = order
      const json = { items: [{ quantity: 1, ...toPriceItem(order) }], custom_data, currency_code }
      // Paddle does not say that it knows keys: what is asked for again later may be over, so it is another.
      const transaction = await requestData<PaddleTransaction & { checkout?: { url?: string | null } | null }>(
        ...[opened, 'transactions', { method: 'POST', key: attemptKey(order.key), json }],
      )
      const id = nonEmptyText(transaction.id)
      if (!id) throw new ProviderResponseError('paddle', 200, 'no_transaction')
      return { checkoutUrl: nonEmptyText(transaction.checkout?.url) ?? null, clientToken: id, externalCheckoutId: id }
    })
  },

  cancel: (opened, { externalSubscriptionId, externalCheckoutId: checkout }) =>
    callProvider('paddle', async () => {
      let id = externalSubscriptionId ?? undefined
      if (!id && checkout) {
        // One that is paid, or over, can't be called off any more.
        const question = { method: 'PATCH', key: attemptKey('cancel', checkout), json: { status: 'canceled' } }
        const canceled = await ignoreStatuses(requestData(opened, transactionPath(checkout), question), 400, 404, 409)
        if (!canceled) id = await findSubscriptionIdOfTransaction(opened, checkout)
      }
      if (!id) return true
      const question = { method: 'POST', key: attemptKey('cancel', id), json: { effective_from: 'immediately' } }
      const done = requestData(opened, `subscriptions/${encodeURIComponent(id)}/cancel`, question)
      await done.catch((error) => ignoreIfCanceled(opened, id, error))
      return true
    }),

  findSubscriptionId: (opened, checkout) =>
    callProvider('paddle', () => findSubscriptionIdOfTransaction(opened, checkout)),

  reprice: (opened, subscription, amount) =>
    callProvider('paddle', async () => {
      const { _id, externalSubscriptionId: id, currency } = subscription
      if (!id) return
      const path = `subscriptions/${encodeURIComponent(id)}`
      const [item] = (await fetchPaddleSubscription(opened, id))?.items ?? []
      // What is not there, or has no price there, nobody pays for.
      if (!item?.price?.product_id) return
      const { product_id, description, unit_price } = item.price
      if (unit_price?.amount === `${amount}`) return
      const price = {
        product_id,
        description: description ?? 'Subscription',
        unit_price: toPaddleMoney(amount, currency),
      }
      const items = [{ quantity: item.quantity ?? 1, price }]
      const json = { items, proration_billing_mode: 'do_not_bill' }
      await requestData(opened, path, { method: 'PATCH', key: attemptKey('reprice', _id, amount), json })
    }),

  fetchSubscription: (opened, externalId) =>
    callProvider('paddle', async () => {
      const subscription = await fetchPaddleSubscription(opened, externalId)
      if (!subscription) return
      const invoices = (await listTransactions(opened, externalId)).flatMap((transaction) => {
        const status = INVOICE_STATUS_BY_TRANSACTION_STATUS[transaction.status ?? '']
        return status ? [{ ...toProviderInvoice(transaction), status }] : []
      })
      const { status = 'pending', ...standing } = toProviderState(subscription)
      return { externalSubscriptionId: externalId, status, ...standing, invoices }
    }),

  webhookSecrets: ({ authentication }) => toSecretList(authentication.webhookSecret),

  async verifyWebhook({ authentication }, raw, headers) {
    const { ts, h1 } = parseSignature(headers.get('paddle-signature') ?? '')
    if (!ts || !isFresh(Number(ts))) return false
    const expected = toSecretList(authentication.webhookSecret).map((secret) => hmac(secret, `${ts}:`, raw))
    return h1.some((signature) => expected.some((one) => isTimingSafeEqual(one, signature)))
  },

  parseEvent: parsePaddleEvent,
}

const priceNames = { monthly: 'monthlyPriceId', yearly: 'yearlyPriceId' } as const
const intervals = { monthly: 'month', yearly: 'year' } as const

/** Paddle counts in minor units, as ISO 4217 has them. */
const toPaddleMoney = (amount: number, currency: string) => ({ amount: `${amount}`, currency_code: currency })

/** The price that Paddle knows, or one made for what is paid here: an amount of its own, or less by a coupon of ours. */
function toPriceItem({ externalIds, billingCycle, dynamic, discount, amount, currency, planName }: CheckoutOrder) {
  const price_id = externalIds[priceNames[billingCycle]]
  if (price_id && !dynamic && !discount) return { price_id }
  const { productId } = externalIds
  return {
    price: {
      description: `${planName} (${billingCycle})`,
      name: planName.slice(0, 150),
      unit_price: toPaddleMoney(amount, currency),
      billing_cycle: { interval: intervals[billingCycle], frequency: 1 },
      quantity: { minimum: 1, maximum: 1 },
      ...(productId
        ? { product_id: productId }
        : { product: { name: planName.slice(0, 200), tax_category: DEFAULT_TAX_CATEGORY } }),
    },
  }
}
const DEFAULT_TAX_CATEGORY = 'standard'

type PaddleRequest = { method?: string; key?: string; json?: unknown }

/** @throws Unreachable, Refusal */
const requestData = async <Data>(opened: PaddleConnection, path: string, request?: PaddleRequest): Promise<Data> =>
  (await requestPaddle<Data>(opened, path, request)).data

async function requestPaddle<Data>(
  opened: PaddleConnection,
  path: string,
  { key, method = 'GET', json }: PaddleRequest = {},
): Promise<{ data: Data; meta?: { pagination?: { has_more?: boolean } } }> {
  const { metadata, authentication } = opened
  if (!authentication.apiKey) throw new ProviderResponseError('paddle', 401, 'no_api_key')
  const { environment = 'live', apiUrl = PADDLE_URLS[environment] } = metadata
  const headers: ProviderRequest['headers'] = {
    authorization: `Bearer ${authentication.apiKey}`,
    'paddle-version': '1',
  }
  if (key) headers['idempotency-key'] = key
  type Refused = { error?: { code?: string } }
  const codeIn = ({ error }: Refused) => error?.code
  return requestJson(opened, joinUrl(apiUrl, path), { method, headers, json }, codeIn)
}

const MAX_TRANSACTION_PAGES = 300
const TRANSACTIONS_PER_PAGE = '30' // more it does not give

/** All of a subscription, page by page (https://developer.paddle.com/api-reference/about/pagination). */
async function listTransactions(opened: PaddleConnection, subscription_id: string): Promise<PaddleTransaction[]> {
  const transactions: PaddleTransaction[] = []
  for (let page = 0; page < MAX_TRANSACTION_PAGES; page++) {
    const after = transactions.at(-1)?.id
    const query = new URLSearchParams({ subscription_id, per_page: TRANSACTIONS_PER_PAGE, ...(after && { after }) })
    const { data, meta } = await requestPaddle<PaddleTransaction[]>(opened, `transactions?${query}`)
    transactions.push(...data)
    if (!data.length || !meta?.pagination?.has_more) break
  }
  return transactions
}

const transactionPath = (id: string) => `transactions/${encodeURIComponent(id)}`

const findSubscriptionIdOfTransaction = async (opened: PaddleConnection, checkout: string) =>
  nonEmptyText(
    (await ignoreStatuses(requestData<PaddleTransaction>(opened, transactionPath(checkout)), 404))?.subscription_id,
  )

const fetchPaddleSubscription = (opened: PaddleConnection, id: string) =>
  ignoreStatuses(requestData<PaddleSubscription>(opened, `subscriptions/${encodeURIComponent(id)}`), 404)

/** What is over can't be ended again, which Paddle says by many codes. */
async function ignoreIfCanceled(opened: PaddleConnection, id: string, error: unknown) {
  if (!(error instanceof ProviderResponseError) || error.status >= 500) throw error
  const subscription = error.status === 404 ? undefined : await fetchPaddleSubscription(opened, id)
  if (subscription && subscription.status !== 'canceled') throw error
}

const INVOICE_STATUS_BY_TRANSACTION_STATUS: Record<string, 'paid' | 'open' | 'void'> = {
  ...{ completed: 'paid', paid: 'paid', past_due: 'open', billed: 'open', canceled: 'void' },
}

/** `ts=…;h1=…`, with a further `h1` while one secret takes the place of another. */
function parseSignature(header: string) {
  const parts = header.split(';').map((part) => part.trim().split('='))
  const of = (name: string) => parts.flatMap(([key, value]) => (key === name && value ? [value] : []))
  const [ts] = of('ts')
  return { ts: ts && /^\d{1,12}$/.test(ts) ? ts : undefined, h1: of('h1').slice(0, 5) }
}
