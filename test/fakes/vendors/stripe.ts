import Stripe from 'stripe'
import { now } from '../../../src/core/clock'
import { specs } from './specs'
import { newId, type SignedWebhook, startVendor, type VendorRequest, type VendorResponse } from './vendor'

// biome-ignore lint/suspicious/noExplicitAny: objects of Stripe
type Any = any

export const STRIPE_SECRET = 'whsec_of_the_test'
export const STRIPE_KEY = 'sk_test_only_for_tests'

const nowSeconds = () => Math.floor(now() / 1000)
const fromFixture = (name: string, own: object): Any => ({ ...structuredClone(specs.stripe?.[name] ?? {}), ...own })

/** Parses a form with nested names such as `a[b][0][c]=d` (https://docs.stripe.com/api). */
export function parseFormBody(text: string) {
  const root: Any = {}
  for (const [name, value] of new URLSearchParams(text)) {
    const keys = name.split(/[[\]]+/).filter(Boolean)
    let at = root
    for (const key of keys.slice(0, -1)) at = at[key] ??= {}
    at[keys.at(-1)!] = value
  }
  return root
}
const toList = (thing: Any): Any[] => Object.values(thing ?? {})

const errorResponse = (status: number, code: string, message: string): VendorResponse => ({
  status,
  body: { error: { type: 'invalid_request_error', code, message } },
})

/**
 * Starts a server with the parts of Stripe's API that are used here: checkout sessions, subscriptions, invoices, and
 * their events, in the shapes of Stripe's fixtures where these are available. With `old`, the periods and subscriptions
 * are where they were before version 2025-03-31.
 */
export async function startStripe({ secret = STRIPE_SECRET, key = STRIPE_KEY, old = false } = {}) {
  const sessions = new Map<string, Any>()
  const subscriptions = new Map<string, Any>()
  const invoices = new Map<string, Any>()
  const prices = new Map<string, Any>()
  /** The events of the webhooks, in the order in which they happened. */
  const events: Any[] = []

  function happened(type: string, object: Any, more: object = {}) {
    const event = fromFixture('event', {
      ...{ id: newId('evt_'), type, created: nowSeconds(), data: { object: structuredClone(object) } },
      ...{ api_version: Stripe.API_VERSION ?? null, pending_webhooks: 1, ...more },
    })
    events.push(event)
    return event
  }

  function answer(asked: VendorRequest): VendorResponse {
    const { method, path, headers, body = {}, query } = asked
    if (headers.authorization !== `Bearer ${key}`)
      return errorResponse(401, 'api_key_invalid', `Invalid API Key: ${headers.authorization}`)
    const [, version, ...rest] = path.split('/')
    if (version !== 'v1') return errorResponse(404, 'resource_missing', 'Unrecognized request URL')
    const route = `${method} ${rest.map((part) => (/^(cs|sub|in)_/.test(part) ? ':id' : part)).join('/')}`
    const id = rest.find((part) => /^(cs|sub|in)_/.test(part)) ?? ''
    if (route === 'GET balance') return { status: 200, body: fromFixture('balance', {}) }
    if (route === 'POST checkout/sessions') return begin(body)
    if (route === 'GET invoices') {
      const data = [...invoices.values()].filter((one) => subscriptionOf(one) === query.get('subscription'))
      const from = data.findIndex((one) => one.id === query.get('starting_after')) + 1
      const page = data.slice(from, from + Math.min(Number(query.get('limit') ?? 10), 100))
      const has_more = from + page.length < data.length
      return { status: 200, body: { object: 'list', data: page, has_more, url: '/v1/invoices' } }
    }
    if (route === 'GET checkout/sessions/:id')
      return sessions.has(id)
        ? { status: 200, body: sessions.get(id) }
        : errorResponse(404, 'resource_missing', `No such session: '${id}'`)
    if (route === 'POST checkout/sessions/:id/expire') {
      const session = sessions.get(id)
      if (session?.status !== 'open')
        return errorResponse(400, 'resource_missing', 'Only open sessions can be expired.')
      expire(id)
      return { status: 200, body: session }
    }
    const subscription = subscriptions.get(id)
    if (!/^(GET|POST|DELETE) subscriptions\/:id$/.test(route))
      return errorResponse(404, 'resource_missing', 'Unrecognized request URL')
    if (!subscription) return errorResponse(404, 'resource_missing', `No such subscription: '${id}'`)
    if (method === 'POST') {
      const [change] = toList(body.items)
      if (change?.id !== subscription.items.data[0].id) return errorResponse(400, 'resource_missing', 'No such item.')
      const bad = refuseData(change.price_data)
      if (bad) return bad
      const { currency, unit_amount, product } = change.price_data
      Object.assign(subscription.items.data[0].price, {
        id: newId('price_'),
        currency,
        unit_amount: Number(unit_amount),
        product,
      })
      happened('customer.subscription.updated', subscription)
    }
    if (method === 'DELETE') {
      if (subscription.status === 'canceled')
        return errorResponse(404, 'resource_missing', `No such subscription: '${id}'`)
      end(id)
    }
    return { status: 200, body: subscription }
  }

  function refuseData(data: Any): VendorResponse | undefined {
    if (!/^[a-z]{3}$/.test(data?.currency ?? ''))
      return errorResponse(400, 'parameter_missing', 'A currency is three small letters.')
    if (!/^\d+$/.test(data.unit_amount ?? ''))
      return errorResponse(400, 'parameter_invalid_integer', 'Invalid integer.')
    if (!data.product && !data.product_data?.name)
      return errorResponse(400, 'parameter_missing', 'A price is of a product.')
    if (!['month', 'year'].includes(data.recurring?.interval))
      return errorResponse(400, 'parameter_missing', 'It recurs.')
  }

  function begin(body: Any): VendorResponse {
    if (body.mode !== 'subscription') return errorResponse(400, 'parameter_missing', 'mode')
    const [item] = toList(body.line_items)
    if (item?.quantity !== '1') return errorResponse(400, 'parameter_missing', 'line_items[0][quantity]')
    if (item.price && !prices.has(item.price))
      return errorResponse(400, 'resource_missing', `No such price: '${item.price}'`)
    const bad = item.price ? undefined : refuseData(item.price_data)
    if (bad) return bad
    const mode = body.ui_mode ?? 'hosted_page'
    if (!['hosted_page', 'embedded_page'].includes(mode)) return errorResponse(400, 'parameter_unknown', 'ui_mode')
    const isEmbedded = mode === 'embedded_page'
    if (isEmbedded ? body.success_url : body.return_url)
      return errorResponse(400, 'parameter_unknown', 'Not in this mode.')
    if (!isEmbedded && !body.success_url) return errorResponse(400, 'parameter_missing', 'success_url')
    if (isEmbedded && !body.return_url && body.redirect_on_completion !== 'never')
      return errorResponse(400, 'parameter_missing', 'return_url')
    const id = newId('cs_test_')
    const price = item.price
      ? prices.get(item.price)
      : {
          ...item.price_data,
          unit_amount: Number(item.price_data.unit_amount),
          product: item.price_data.product ?? newId('prod_'),
        }
    const session = fromFixture('checkout.session', {
      ...{ id, mode: 'subscription', status: 'open', payment_status: 'unpaid', ui_mode: mode, created: nowSeconds() },
      ...{
        url: isEmbedded ? null : `https://checkout.stripe.com/c/pay/${id}`,
        client_secret: isEmbedded ? `${id}_secret_x` : null,
      },
      ...{ client_reference_id: body.client_reference_id ?? null, metadata: body.metadata ?? {}, subscription: null },
      ...{ customer_email: body.customer_email ?? null, payment_intent: null, payment_link: null },
      ...{ amount_total: price.unit_amount, currency: price.currency },
      ...{ success_url: body.success_url ?? null, cancel_url: body.cancel_url ?? null },
    })
    sessions.set(id, session)
    Object.defineProperty(session, 'asked', { value: { price, metadata: body.subscription_data?.metadata ?? {} } })
    return { status: 200, body: session }
  }

  /** Pays a checkout session. `trial` is the length of the trial in days; `at` is the start of the period (ms). */
  function pay(session: string, { trial = 0, at = now() } = {}) {
    const one = sessions.get(session)
    const { price, metadata } = one.asked
    const start = Math.floor(at / 1000)
    const id = newId('sub_')
    const end = trial ? start + trial * 86_400 : periodEnd(start, price.recurring.interval)
    const subscription = fromFixture('subscription', {
      ...{ id, status: trial ? 'trialing' : 'active', customer: newId('cus_'), created: start, start_date: start },
      ...{
        metadata,
        cancel_at: null,
        canceled_at: null,
        ended_at: null,
        cancel_at_period_end: false,
        pause_collection: null,
      },
      ...{ currency: price.currency, trial_start: trial ? start : null, trial_end: trial ? end : null },
    })
    const item = { ...(subscription.items?.data?.[0] ?? {}), id: newId('si_'), quantity: 1, subscription: id }
    item.price = {
      ...item.price,
      id: price.id ?? newId('price_'),
      currency: price.currency,
      unit_amount: price.unit_amount,
      product: price.product,
      recurring: price.recurring,
    }
    subscription.items = { object: 'list', data: [item], has_more: false }
    moveTo(subscription, start, end)
    subscriptions.set(id, subscription)
    Object.assign(one, { status: 'complete', payment_status: 'paid', subscription: id, url: null })
    happened('customer.subscription.created', subscription)
    happened('checkout.session.completed', one)
    const invoice = bill(subscription, trial ? 0 : price.unit_amount)
    settle(invoice)
    return id
  }

  function moveTo(subscription: Any, start: number, end: number) {
    const at = old ? subscription : subscription.items.data[0]
    const other = old ? subscription.items.data[0] : subscription
    delete other.current_period_start
    delete other.current_period_end
    Object.assign(at, { current_period_start: start, current_period_end: end })
  }
  const periodOf = (subscription: Any) => (old ? subscription : subscription.items.data[0])

  function bill(subscription: Any, amount = subscription.items.data[0].price.unit_amount) {
    const { current_period_start: start, current_period_end: end } = periodOf(subscription)
    const id = newId('in_')
    const { currency, metadata } = subscription
    const line = {
      ...{
        id: newId('il_'),
        object: 'line_item',
        amount,
        currency,
        quantity: 1,
        description: '1 × Plan',
        period: { start, end },
      },
      ...(old
        ? { subscription: subscription.id }
        : {
            parent: { type: 'subscription_item_details', subscription_item_details: { subscription: subscription.id } },
          }),
    }
    const invoice = fromFixture('invoice', {
      ...{ id, status: 'open', currency, amount_due: amount, amount_paid: 0, amount_remaining: amount, total: amount },
      ...{
        billing_reason: 'subscription_cycle',
        hosted_invoice_url: `https://invoice.stripe.com/i/${id}`,
        created: nowSeconds(),
        period_start: start,
        period_end: start,
      },
      ...{ lines: { object: 'list', data: [line], has_more: false } },
    })
    delete invoice.subscription
    delete invoice.parent
    if (old) Object.assign(invoice, { subscription: subscription.id, subscription_details: { metadata } })
    else
      invoice.parent = {
        type: 'subscription_details',
        quote_details: null,
        subscription_details: { metadata, subscription: subscription.id },
      }
    invoices.set(id, invoice)
    return invoice
  }

  const subscriptionOf = (invoice: Any) => invoice.subscription ?? invoice.parent?.subscription_details?.subscription

  function settle(invoice: Any) {
    Object.assign(invoice, { status: 'paid', amount_paid: invoice.amount_due, amount_remaining: 0 })
    invoice.status_transitions = { ...invoice.status_transitions, paid_at: nowSeconds() }
    return happened('invoice.paid', invoice)
  }

  function change(id: string, to: object) {
    const subscription = subscriptions.get(id)
    Object.assign(subscription, to)
    return happened('customer.subscription.updated', subscription)
  }

  function end(id: string) {
    const subscription = subscriptions.get(id)
    Object.assign(subscription, { status: 'canceled', ended_at: nowSeconds(), canceled_at: nowSeconds() })
    return happened('customer.subscription.deleted', subscription)
  }

  function expire(session: string) {
    const one = sessions.get(session)
    Object.assign(one, { status: 'expired', url: null })
    return happened('checkout.session.expired', one)
  }

  const vendor = await startVendor({
    read: parseFormBody,
    answer,
    refusal: (status, code) => errorResponse(status, code, `It failed for ${key}.`).body,
    keyHeader: 'idempotency-key',
    reused: {
      status: 400,
      body: { error: { type: 'idempotency_error', message: 'Keys can only be used with the same parameters.' } },
    },
  })

  return {
    ...vendor,
    ...{ events, sessions, subscriptions, invoices, happened, pay, expire, change, end },
    /** Returns the body that creates a connection to this server. */
    connection: () => ({
      name: 'Stripe',
      kind: 'stripe',
      metadata: { apiUrl: vendor.url },
      authentication: { secretKey: key, webhookSecret: secret },
    }),
    /** Adds a price that can be bought. */
    price(id: string, unit_amount: number, currency = 'usd', interval = 'month') {
      prices.set(id, { id, unit_amount, currency, recurring: { interval }, product: newId('prod_') })
    },
    /** Pauses a subscription (https://docs.stripe.com/api/subscriptions/pause). */
    pause(id: string, reason = 'pause_requested') {
      const subscription = subscriptions.get(id)
      const paused = { transitioned_at: nowSeconds(), type: 'subscription', subscription: { type: reason } }
      Object.assign(subscription, { status: 'paused', ...(!old && { status_details: { paused } }) })
      happened('customer.subscription.paused', subscription)
      return happened('customer.subscription.updated', subscription)
    },
    /** Resumes a paused subscription. Its next period begins now, and is paid. */
    resume(id: string) {
      const subscription = subscriptions.get(id)
      Object.assign(subscription, { status: 'active', status_details: null })
      moveTo(subscription, nowSeconds(), periodEnd(nowSeconds(), subscription.items.data[0].price.recurring.interval))
      happened('customer.subscription.resumed', subscription)
      const invoice = bill(subscription)
      settle(invoice)
      return invoice.id as string
    },
    /** Starts the next period, and pays it. */
    renew(id: string) {
      const subscription = subscriptions.get(id)
      const { current_period_end: start } = periodOf(subscription)
      moveTo(subscription, start, periodEnd(start, subscription.items.data[0].price.recurring.interval))
      change(id, { status: 'active' })
      const invoice = bill(subscription)
      settle(invoice)
      return invoice.id as string
    },
    /** Makes the payment of another invoice fail. */
    fail(id: string) {
      const invoice = bill(subscriptions.get(id))
      happened('invoice.payment_failed', invoice)
      change(id, { status: 'past_due' })
      return invoice.id as string
    },
    /** Pays an invoice whose payment failed. */
    recover(invoice: string) {
      settle(invoices.get(invoice))
      change(subscriptionOf(invoices.get(invoice)), { status: 'active' })
    },
    giveUp(invoice: string, type = 'invoice.voided') {
      Object.assign(invoices.get(invoice), { status: type === 'invoice.voided' ? 'void' : 'uncollectible' })
      return happened(type, invoices.get(invoice))
    },
    /** Returns an event as a signed webhook. */
    signEvent: (event: Any, by = secret, at = nowSeconds()) => signStripeWebhook(JSON.stringify(event), by, at),
  }
}
export type StripeVendor = Awaited<ReturnType<typeof startStripe>>

/** Signs a webhook by Stripe's own package, at a time in seconds. */
export async function signStripeWebhook(raw: string, secret: string, timestamp = nowSeconds()): Promise<SignedWebhook> {
  const header = await Stripe.webhooks.generateTestHeaderStringAsync({ payload: raw, secret, timestamp } as Any)
  return { raw, headers: { 'content-type': 'application/json; charset=utf-8', 'stripe-signature': header } }
}

function periodEnd(start: number, interval: string) {
  const date = new Date(start * 1000)
  if (interval === 'year') date.setUTCFullYear(date.getUTCFullYear() + 1)
  else date.setUTCMonth(date.getUTCMonth() + 1)
  return date.getTime() / 1000
}
