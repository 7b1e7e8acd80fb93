import { now } from '../../../src/core/clock'
import { newId, type SignedWebhook, startVendor, type VendorRequest, type VendorResponse } from './vendor'

// biome-ignore lint/suspicious/noExplicitAny: objects of Paddle
type Any = any

export const PADDLE_SECRET = 'pdl_ntfset_of_the_test'
const PADDLE_API_KEY = 'pdl_sdbx_apikey_only_for_tests'

const time = (at = now()) => new Date(at).toISOString()
const errorResponse = (status: number, code: string): VendorResponse => ({
  status,
  body: {
    error: { type: 'request_error', code, detail: `It is about ${PADDLE_API_KEY}.`, documentation_url: '' },
    meta: { request_id: newId('') },
  },
})
const okResponse = (data: unknown): VendorResponse => ({ status: 200, body: { data, meta: { request_id: newId('') } } })

/**
 * Starts a server with the parts of Paddle's API that are used here: transactions and subscriptions, and their events.
 */
export async function startPaddle({ secret = PADDLE_SECRET } = {}) {
  const prices = new Map<string, Any>()
  const transactions = new Map<string, Any>()
  const subscriptions = new Map<string, Any>()
  const events: Any[] = []

  function happened(event_type: string, data: Any, more: object = {}) {
    const event = {
      ...{ event_id: newId('evt_01'), event_type, occurred_at: time(), notification_id: newId('ntf_01') },
      ...{ data: structuredClone(data), ...more },
    }
    events.push(event)
    return event
  }

  function answer({ method, path, headers, body = {}, query }: VendorRequest): VendorResponse {
    if (headers.authorization !== `Bearer ${PADDLE_API_KEY}`) return errorResponse(403, 'authentication_malformed')
    const [, collection, id = '', verb] = path.split('/')
    if (collection === 'event-types') return okResponse([])
    if (collection === 'transactions' && !id) {
      if (method === 'POST') return begin(body)
      const all = [...transactions.values()].filter((one) => one.subscription_id === query.get('subscription_id'))
      const from = all.findIndex((one) => one.id === query.get('after')) + 1
      const page = all.slice(from, from + Math.min(Number(query.get('per_page') ?? 30), 30))
      const pagination = {
        per_page: 30,
        next: '',
        has_more: from + page.length < all.length,
        estimated_total: all.length,
      }
      return { status: 200, body: { data: page, meta: { request_id: newId(''), pagination } } }
    }
    if (collection === 'transactions') {
      const one = transactions.get(id)
      if (!one) return errorResponse(404, 'not_found')
      if (method === 'PATCH') {
        if (body.status !== 'canceled') return errorResponse(400, 'bad_request')
        if (one.status !== 'ready' && one.status !== 'draft') return errorResponse(400, 'transaction_immutable')
        one.status = 'canceled'
      }
      return okResponse(one)
    }
    const subscription = subscriptions.get(id)
    if (collection !== 'subscriptions' || !subscription) return errorResponse(404, 'not_found')
    if (method === 'PATCH') return reprice(subscription, body)
    if (verb === 'cancel') {
      if (body.effective_from !== 'immediately') return errorResponse(400, 'bad_request')
      if (subscription.status === 'canceled') return errorResponse(400, 'subscription_is_canceled_action_invalid')
      become(id, 'canceled', 'canceled')
    }
    return okResponse(subscription)
  }

  function flawOf(price: Any) {
    if (typeof price?.description !== 'string' || !/^\d+$/.test(price.unit_price?.amount ?? '')) return 'bad_request'
    if (!/^[A-Z]{3}$/.test(price.unit_price.currency_code)) return 'bad_request'
    return price.product_id || (price.product?.name && price.product.tax_category) ? undefined : 'bad_request'
  }

  function begin({ items, custom_data = null, currency_code, ...others }: Any): VendorResponse {
    if (Object.keys(others).length) return errorResponse(400, 'invalid_field')
    const [item] = items ?? []
    if (item?.quantity !== 1) return errorResponse(400, 'bad_request')
    const flaw = item.price_id ? !prices.has(item.price_id) && 'entity_not_found' : flawOf(item.price)
    if (flaw || (item.price && !item.price.billing_cycle)) return errorResponse(400, flaw || 'bad_request')
    const price = item.price_id
      ? prices.get(item.price_id)
      : { id: newId('pri_01'), product_id: newId('pro_01'), ...item.price }
    const id = newId('txn_01')
    const amount = price.unit_price.amount
    const totals = { subtotal: amount, discount: '0', tax: '0', total: amount }
    const transaction = {
      ...{ id, status: 'ready', customer_id: null, address_id: null, business_id: null, custom_data, origin: 'api' },
      ...{ currency_code, collection_mode: 'automatic', subscription_id: null, invoice_id: null, billing_period: null },
      ...{
        items: [{ price_id: price.id, price, quantity: 1 }],
        payments: [],
        checkout: { url: `https://shop.example.com/pay?_ptxn=${id}` },
      },
      details: {
        ...{
          tax_rates_used: [],
          totals: { ...totals, credit: '0', balance: amount, grand_total: amount, currency_code },
        },
        line_items: [
          {
            id: newId('txnitm_'),
            price_id: price.id,
            quantity: 1,
            tax_rate: '0',
            totals,
            product: { id: price.product_id, name: price.name ?? 'Plan' },
          },
        ],
      },
      ...{ created_at: time(), updated_at: time(), billed_at: null },
    }
    transactions.set(id, transaction)
    return { status: 201, body: { data: transaction, meta: { request_id: newId('') } } }
  }

  function reprice(subscription: Any, { items: [item], proration_billing_mode }: Any): VendorResponse {
    const flaw = flawOf(item?.price)
    // A price without a billing cycle is charged once, and a subscription needs recurring items.
    if (flaw || !proration_billing_mode || !item.price.billing_cycle) return errorResponse(400, flaw || 'bad_request')
    Object.assign(subscription.items[0], {
      price: { ...subscription.items[0].price, id: newId('pri_01'), ...item.price },
    })
    happened('subscription.updated', subscription)
    return okResponse(subscription)
  }

  function become(id: string, status: string, type = 'updated', more: object = {}) {
    const subscription = subscriptions.get(id)
    Object.assign(subscription, { status, updated_at: time(), ...more })
    if (status === 'canceled') Object.assign(subscription, { canceled_at: time(), current_billing_period: null })
    return happened(`subscription.${type}`, subscription)
  }

  function settle(transaction: Any) {
    const { grand_total } = transaction.details.totals
    const payment = {
      payment_attempt_id: crypto.randomUUID(),
      amount: grand_total,
      status: 'captured',
      created_at: time(),
      captured_at: time(),
    }
    Object.assign(transaction, {
      status: 'completed',
      billed_at: time(),
      invoice_id: newId('inv_01'),
      invoice_number: '1-1',
    })
    transaction.payments = [payment, ...transaction.payments]
    return happened('transaction.completed', transaction)
  }

  const periodFrom = (at: number, interval: string) => {
    const end = new Date(at)
    if (interval === 'year') end.setUTCFullYear(end.getUTCFullYear() + 1)
    else end.setUTCMonth(end.getUTCMonth() + 1)
    return { starts_at: time(at), ends_at: time(end.getTime()) }
  }

  /** Starts the next period, and returns its unpaid transaction. */
  function advance(id: string) {
    const subscription = subscriptions.get(id)
    const { interval } = subscription.billing_cycle
    subscription.current_billing_period = periodFrom(Date.parse(subscription.current_billing_period.ends_at), interval)
    const first = [...transactions.values()].find((one) => one.subscription_id === id)
    const transaction = {
      ...structuredClone(first),
      id: newId('txn_01'),
      status: 'billed',
      origin: 'subscription_recurring',
      payments: [],
      invoice_id: null,
    }
    const { amount } = subscription.items[0].price.unit_price
    Object.assign(transaction.details.totals, { total: amount, grand_total: amount })
    transaction.billing_period = subscription.current_billing_period
    transactions.set(transaction.id, transaction)
    return transaction
  }

  function failed(transaction: Any) {
    transaction.payments = [
      {
        payment_attempt_id: crypto.randomUUID(),
        amount: transaction.details.totals.grand_total,
        status: 'error',
        error_code: 'declined',
        created_at: time(),
        captured_at: null,
      },
    ]
    return happened('transaction.payment_failed', transaction)
  }

  const vendor = await startVendor({
    read: (text) => JSON.parse(text),
    answer,
    refusal: (status, code) => errorResponse(status, code).body,
  })

  return {
    ...vendor,
    ...{ events, prices, transactions, subscriptions, happened, become },
    connection: () => ({
      name: 'Paddle',
      kind: 'paddle',
      metadata: { apiUrl: vendor.url },
      authentication: { apiKey: PADDLE_API_KEY, webhookSecret: secret },
    }),
    price(id: string, amount: string, currency_code = 'USD', interval = 'month') {
      const price = {
        id,
        product_id: newId('pro_01'),
        name: 'Plan',
        description: 'Plan',
        unit_price: { amount, currency_code },
      }
      prices.set(id, { ...price, billing_cycle: { interval, frequency: 1 } })
    },
    /** Pays a transaction in the checkout. `trial` is the length of the trial in days. */
    pay(transaction: string, { trial = 0, at = now() } = {}) {
      const one = transactions.get(transaction)
      const [item] = one.items
      const id = newId('sub_01')
      const period = trial
        ? { starts_at: time(at), ends_at: time(at + trial * 86_400_000) }
        : periodFrom(at, item.price.billing_cycle.interval)
      const status = trial ? 'trialing' : 'active'
      subscriptions.set(id, {
        ...{
          id,
          status,
          customer_id: newId('ctm_01'),
          address_id: newId('add_01'),
          business_id: null,
          currency_code: one.currency_code,
        },
        ...{
          created_at: time(),
          updated_at: time(),
          started_at: time(at),
          first_billed_at: time(at),
          next_billed_at: period.ends_at,
        },
        ...{ paused_at: null, canceled_at: null, discount: null, collection_mode: 'automatic', scheduled_change: null },
        ...{ current_billing_period: period, billing_cycle: item.price.billing_cycle, custom_data: one.custom_data },
        items: [
          {
            status,
            quantity: 1,
            recurring: true,
            created_at: time(),
            updated_at: time(),
            trial_dates: trial ? period : null,
            price: item.price,
            product: null,
          },
        ],
      })
      Object.assign(one, {
        subscription_id: id,
        billing_period: period,
        customer_id: subscriptions.get(id).customer_id,
      })
      // The transaction that begins a trial is about nothing.
      if (trial) Object.assign(one.details.totals, { total: '0', grand_total: '0' })
      happened('subscription.created', subscriptions.get(id))
      if (!trial) happened('subscription.activated', subscriptions.get(id))
      else happened('subscription.trialing', subscriptions.get(id))
      settle(one)
      return id
    },
    renew(id: string) {
      const transaction = advance(id)
      become(id, 'active')
      settle(transaction)
      return transaction.id as string
    },
    fail(id: string) {
      const transaction = advance(id)
      failed(transaction)
      become(id, 'past_due', 'past_due')
      return transaction.id as string
    },
    pause(id: string, resume_at: string | null = null) {
      const scheduled_change = resume_at && { action: 'resume', effective_at: resume_at, resume_at }
      become(id, 'paused', 'paused', { paused_at: time(), current_billing_period: null, scheduled_change })
    },
    /** Resumes a paused subscription. Its next period begins now, and is paid. */
    resume(id: string) {
      const current_billing_period = periodFrom(now(), subscriptions.get(id).billing_cycle.interval)
      become(id, 'active', 'resumed', { paused_at: null, scheduled_change: null, current_billing_period })
      const first = [...transactions.values()].find((one) => one.subscription_id === id)
      const transaction = { ...structuredClone(first), id: newId('txn_01'), status: 'billed', payments: [] }
      const { amount } = subscriptions.get(id).items[0].price.unit_price
      Object.assign(transaction.details.totals, { total: amount, grand_total: amount })
      transaction.billing_period = current_billing_period
      transactions.set(transaction.id, transaction)
      settle(transaction)
      return transaction.id as string
    },
    recover(transaction: string) {
      const one = transactions.get(transaction)
      settle(one)
      become(one.subscription_id, 'active')
    },
    /** Makes a payment in the checkout fail. */
    decline: (transaction: string) => failed(transactions.get(transaction)),
    /** Returns an event as a webhook that was signed at a time in seconds. */
    signEvent: (event: Any, by: string | string[] = secret, at = Math.floor(now() / 1000)): SignedWebhook =>
      signPaddleWebhook(JSON.stringify(event), by, at),
  }
}
export type PaddleVendor = Awaited<ReturnType<typeof startPaddle>>

/**
 * Signs a webhook as described at https://developer.paddle.com/webhooks/signature-verification; with two secrets while
 * one is being replaced.
 */
export function signPaddleWebhook(raw: string, secrets: string | string[], at: number): SignedWebhook {
  const h1 = [secrets]
    .flat()
    .map((secret) => `h1=${new Bun.CryptoHasher('sha256', secret).update(`${at}:${raw}`).digest('hex')}`)
  return { raw, headers: { 'content-type': 'application/json', 'paddle-signature': [`ts=${at}`, ...h1].join(';') } }
}
