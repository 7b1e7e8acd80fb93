import type { ResolvedConnection } from '../../../connections/kinds/index'
import { PADDLE_URLS } from '../../../connections/kinds/paddle'
import { joinUrl } from '../../../connections/kinds/probe'
import { isTimingSafeEqual } from '../../../core/crypto'
import type { Cycle } from '../../billing-period'
import { missingPriceProblem } from '../errors'
import { nonEmptyText, toMap } from '../event-parser'
import type { CheckoutOrder, Provider } from '../provider'
import {
  callProvider,
  ignoreStatuses,
  type ProviderRequest,
  ProviderResponseError,
  requestJson,
} from '../provider-http'
import { hmac, isFresh, toSecretList } from '../webhook-signature'
import {
  type PaddleSubscription,
  type PaddleTransaction,
  parsePaddleEvent,
  toProviderInvoice,
  toProviderState,
} from './events'

type PaddleConnection = ResolvedConnection<'paddle'>

/**
 * Paddle (https://developer.paddle.com/api-reference). The vendor's package is used in tests only: it sends requests past
 * our HTTP client, accepts webhooks of at most five seconds' age, and checks only one of several signatures.
 */
export const paddle: Provider<'paddle'> = {
  assertPriceConfigured(_, { externalIds, billingCycle, dynamic }) {
    const name = priceNames[billingCycle]
    if (!dynamic && !externalIds[name]) throw missingPriceProblem('paddle', name)
  },

  async createCheckout(connection, order) {
    paddle.assertPriceConfigured?.(connection, order)
    return callProvider('paddle', async () => {
      const { metadata: custom_data, currency: currency_code } = order
      const json = { items: [{ quantity: 1, ...toPriceItem(order) }], custom_data, currency_code }
      // Paddle has no idempotency keys: a second transaction would be another checkout.
      const transaction = await requestData<PaddleTransaction & { checkout?: { url?: string | null } | null }>(
        ...[connection, 'transactions', { method: 'POST', json, isRepeatable: false }],
      )
      const id = nonEmptyText(transaction.id)
      if (!id) throw new ProviderResponseError('paddle', 200, 'no_transaction')
      return { checkoutUrl: nonEmptyText(transaction.checkout?.url) ?? null, clientToken: id, externalCheckoutId: id }
    })
  },

  cancel: (connection, { externalSubscriptionId, externalCheckoutId: checkout }, { unpaidOnly = false } = {}) =>
    callProvider('paddle', async () => {
      let id = externalSubscriptionId ?? undefined
      if (!id && checkout) {
        // A transaction that is paid or canceled cannot be canceled.
        const request = { method: 'PATCH', json: { status: 'canceled' } }
        const canceled = await ignoreStatuses(
          requestData(connection, transactionPath(checkout), request),
          400,
          404,
          409,
        )
        if (!canceled) id = await findSubscriptionIdOfTransaction(connection, checkout)
      }
      if (!id) return true
      if (!externalSubscriptionId && unpaidOnly) return false
      const request = { method: 'POST', json: { effective_from: 'immediately' } }
      const cancellation = requestData(connection, `subscriptions/${encodeURIComponent(id)}/cancel`, request)
      await cancellation.catch((error) => ignoreIfCanceled(connection, id, error))
      return true
    }),

  findSubscriptionId: (connection, checkout) =>
    callProvider('paddle', () => findSubscriptionIdOfTransaction(connection, checkout)),

  reprice: (connection, subscription, amount) =>
    callProvider('paddle', async () => {
      const { externalSubscriptionId: id, currency, billingCycle } = subscription
      if (!id) return
      const path = `subscriptions/${encodeURIComponent(id)}`
      const [item] = (await fetchPaddleSubscription(connection, id))?.items ?? []
      // A subscription that does not exist, or has no price, costs nothing.
      if (!item?.price?.product_id) return
      const { product_id, description, unit_price, billing_cycle } = item.price
      const isSameCycle = billing_cycle?.interval === intervals[billingCycle] && billing_cycle.frequency === 1
      if (unit_price?.amount === `${amount}` && isSameCycle) return
      const price = {
        product_id,
        description: description ?? 'Subscription',
        ...toRecurringPrice(amount, currency, billingCycle),
      }
      const items = [{ quantity: 1, price }]
      const json = { items, proration_billing_mode: 'do_not_bill' }
      await requestData(connection, path, { method: 'PATCH', json })
    }),

  fetchSubscription: (connection, externalId) =>
    callProvider('paddle', async () => {
      const subscription = await fetchPaddleSubscription(connection, externalId)
      if (!subscription) return
      const invoices = (await listTransactions(connection, externalId)).flatMap((transaction) => {
        const status = toInvoiceStatus(transaction)
        return status ? [{ ...toProviderInvoice(transaction), status }] : []
      })
      const { status = 'pending', ...state } = toProviderState(subscription)
      return { externalSubscriptionId: externalId, status, ...state, invoices }
    }),

  webhookSecrets: ({ authentication }) => toSecretList(authentication.webhookSecret),

  async verifyWebhook({ authentication }, raw, headers) {
    const { ts, h1 } = parseSignature(headers.get('paddle-signature') ?? '')
    if (!ts || !isFresh(Number(ts))) return false
    const expected = toSecretList(authentication.webhookSecret).map((secret) => hmac(secret, `${ts}:`, raw))
    return h1.some((signature) => expected.some((candidate) => isTimingSafeEqual(candidate, signature)))
  },

  parseEvent: parsePaddleEvent,
}

const priceNames = { monthly: 'monthlyPriceId', yearly: 'yearlyPriceId' } as const
const intervals = { monthly: 'month', yearly: 'year' } as const

/** Paddle's amounts are in minor units of ISO 4217. A price without a billing cycle would be charged only once. */
const toRecurringPrice = (amount: number, currency: string, cycle: Cycle) => ({
  unit_price: { amount: `${amount}`, currency_code: currency },
  billing_cycle: { interval: intervals[cycle], frequency: 1 },
  quantity: { minimum: 1, maximum: 1 },
})

/** Returns the price that exists at Paddle, or a new one for another amount. */
function toPriceItem({ externalIds, billingCycle, isPlanPrice, amount, currency, planName }: CheckoutOrder) {
  const price_id = externalIds[priceNames[billingCycle]]
  if (price_id && isPlanPrice) return { price_id }
  const { productId } = externalIds
  return {
    price: {
      description: `${planName} (${billingCycle})`,
      name: planName.slice(0, 150),
      ...toRecurringPrice(amount, currency, billingCycle),
      ...(productId
        ? { product_id: productId }
        : { product: { name: planName.slice(0, 200), tax_category: DEFAULT_TAX_CATEGORY } }),
    },
  }
}
const DEFAULT_TAX_CATEGORY = 'standard'

type PaddleRequest = Omit<ProviderRequest, 'headers' | 'body'>

/** @throws UpstreamUnreachable, ProviderResponseError */
const requestData = async <Data>(connection: PaddleConnection, path: string, request?: PaddleRequest): Promise<Data> =>
  (await requestPaddle<Data>(connection, path, request)).data

async function requestPaddle<Data>(
  connection: PaddleConnection,
  path: string,
  { method = 'GET', ...request }: PaddleRequest = {},
): Promise<{ data: Data; meta?: { pagination?: { has_more?: boolean } } }> {
  const { metadata, authentication } = connection
  if (!authentication.apiKey) throw new ProviderResponseError('paddle', 401, 'no_api_key')
  const { environment = 'live', apiUrl = PADDLE_URLS[environment] } = metadata
  const headers = { authorization: `Bearer ${authentication.apiKey}`, 'paddle-version': '1' }
  type Refused = { error?: { code?: string } }
  const codeIn = ({ error }: Refused) => error?.code
  return requestJson(connection, joinUrl(apiUrl, path), { ...request, method, headers }, codeIn)
}

const MAX_TRANSACTION_PAGES = 300
const TRANSACTIONS_PER_PAGE = '30' // the maximum at Paddle

/** Returns all transactions of a subscription, read page by page (https://developer.paddle.com/api-reference/about/pagination). */
async function listTransactions(connection: PaddleConnection, subscription_id: string): Promise<PaddleTransaction[]> {
  const transactions: PaddleTransaction[] = []
  for (let page = 0; page < MAX_TRANSACTION_PAGES; page++) {
    const after = transactions.at(-1)?.id
    const query = new URLSearchParams({ subscription_id, per_page: TRANSACTIONS_PER_PAGE, ...(after && { after }) })
    const { data, meta } = await requestPaddle<PaddleTransaction[]>(connection, `transactions?${query}`)
    transactions.push(...data)
    if (!data.length || !meta?.pagination?.has_more) break
  }
  return transactions
}

const transactionPath = (id: string) => `transactions/${encodeURIComponent(id)}`

const findSubscriptionIdOfTransaction = async (connection: PaddleConnection, checkout: string) =>
  nonEmptyText(
    (await ignoreStatuses(requestData<PaddleTransaction>(connection, transactionPath(checkout)), 404))?.subscription_id,
  )

const fetchPaddleSubscription = (connection: PaddleConnection, id: string) =>
  ignoreStatuses(requestData<PaddleSubscription>(connection, `subscriptions/${encodeURIComponent(id)}`), 404)

/** Ignores the failure if the subscription is canceled already, for which Paddle has many error codes. @throws `error` */
async function ignoreIfCanceled(connection: PaddleConnection, id: string, error: unknown) {
  if (!(error instanceof ProviderResponseError) || error.status >= 500) throw error
  const subscription = error.status === 404 ? undefined : await fetchPaddleSubscription(connection, id)
  if (subscription && subscription.status !== 'canceled') throw error
}

const INVOICE_STATUSES = toMap<'paid' | 'open' | 'void'>({
  ...{ completed: 'paid', paid: 'paid', past_due: 'open', billed: 'open', canceled: 'void' },
})

/** Returns the status of an invoice, or undefined for a transaction that is none yet. */
const toInvoiceStatus = ({ status = '' }: PaddleTransaction) => INVOICE_STATUSES.get(status)

/** Parses `ts=…;h1=…`. There may be several `h1` during a rotation of the secret. */
function parseSignature(header: string) {
  const parts = header.split(';').map((part) => part.trim().split('='))
  const of = (name: string) => parts.flatMap(([key, value]) => (key === name && value ? [value] : []))
  const [ts] = of('ts')
  return { ts: ts && /^\d{1,12}$/.test(ts) ? ts : undefined, h1: of('h1').slice(0, 5) }
}
