import Ajv, { type ValidateFunction } from 'ajv'
import { now } from '../../../src/core/clock'
import { specs } from './specs'
import { newId, type SignedWebhook, startVendor, type VendorRequest, type VendorResponse } from './vendor'

// biome-ignore lint/suspicious/noExplicitAny: objects of PayPal
type Any = any

const PAYPAL_CLIENT = { id: 'the-client', secret: 'a secret of PayPal: é&s' }
const PAYPAL_WEBHOOK_ID = '1JE4291016473214C'

const time = (at = now()) => `${new Date(at).toISOString().slice(0, 19)}Z`

/** Returns a check of values by PayPal's API documents. Without the documents every value is valid. */
function createSchemaCheck() {
  const compiled = new Map<string, ValidateFunction>()
  const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true, unicodeRegExp: false })
  for (const [name, document] of [
    ['subscriptions', specs.subscriptions],
    ['webhooks', specs.webhooks],
  ] as const) {
    if (!document) continue
    const { components } = structuredClone(document)
    // A property that is not described there is a mistake of ours.
    for (const strict of [
      'subscription_request_post',
      'plan_override',
      'billing_cycle_override',
      'pricing_scheme',
      'application_context',
      'subscription_cancel_request',
      'verify_webhook_signature',
    ])
      if (components.schemas[strict]) components.schemas[strict].additionalProperties = false
    ajv.addSchema({ $id: name, components })
  }
  return (document: 'subscriptions' | 'webhooks', schema: string, value: unknown): string | undefined => {
    if (!specs[document]) return
    const $ref = `${document}#/components/schemas/${schema}`
    const fits = compiled.get($ref) ?? ajv.compile({ $ref })
    compiled.set($ref, fits)
    return fits(value) ? undefined : `${schema}: ${ajv.errorsText(fits.errors)}`
  }
}

const errorBody = (status: number, name: string, issue = name) => ({
  name,
  message: `It is about ${PAYPAL_CLIENT.secret}.`,
  debug_id: newId('d'),
  details: [{ issue, description: 'See the documents.' }],
  links: [],
  ...(status === 401 && { error: 'invalid_token' }),
})

/**
 * Starts a server with the parts of PayPal's API that are used here: tokens, plans, subscriptions, their transactions,
 * and webhooks with the call that verifies them. Requests and responses are checked by PayPal's API documents where
 * they are available.
 */
export async function startPaypal() {
  const check = createSchemaCheck()
  const plans = new Map<string, Any>()
  const subscriptions = new Map<string, Any>()
  const transactions = new Map<string, Any[]>()
  const events: Any[] = []
  const tokens = new Set<string>()
  /** The webhooks that were sent, by signature. */
  const signed = new Map<string, { id: string; time: string; webhook: string; event: string }>()
  /** The violations of the documents. */
  const flaws: string[] = []

  /** The lifetime of tokens in seconds, and the number of transactions on a page. */
  const terms = { expires: 32_400, page: 20 }

  function fitting(document: 'subscriptions' | 'webhooks', schema: string, value: unknown) {
    const flaw = check(document, schema, value)
    if (flaw) flaws.push(flaw)
    return flaw
  }
  const unfit = (): VendorResponse => ({
    status: 400,
    body: errorBody(400, 'INVALID_REQUEST', 'INVALID_PARAMETER_SYNTAX'),
  })
  const gone = (): VendorResponse => ({
    status: 404,
    body: errorBody(404, 'RESOURCE_NOT_FOUND', 'INVALID_RESOURCE_ID'),
  })

  function answer(asked: VendorRequest): VendorResponse {
    const { method, path, headers, body, query } = asked
    if (path === '/v1/oauth2/token') return grant(headers, body)
    const bearer = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1]
    if (!bearer || !tokens.has(bearer)) return { status: 401, body: errorBody(401, 'AUTHENTICATION_FAILURE') }
    if (path === '/v1/notifications/verify-webhook-signature') return verify(body)
    const [, collection, id = '', verb] =
      /^\/v1\/billing\/(plans|subscriptions)(?:\/([^/]+))?(?:\/(\w+))?$/.exec(path) ?? []
    if (!collection) return gone()
    if (collection === 'plans') return plans.has(id) ? { status: 200, body: plans.get(id) } : gone()
    if (!id) return begin(body)
    const subscription = subscriptions.get(id)
    if (!subscription) return gone()
    if (verb === 'transactions') return { status: 200, body: paged(path, query, transactions.get(id) ?? []) }
    if (verb === 'cancel') {
      if (fitting('subscriptions', 'subscription_cancel_request', body)) return unfit()
      if (!['ACTIVE', 'SUSPENDED'].includes(subscription.status))
        return { status: 422, body: errorBody(422, 'UNPROCESSABLE_ENTITY', 'SUBSCRIPTION_STATUS_INVALID') }
      become(id, 'CANCELLED')
      return { status: 204 }
    }
    if (method === 'PATCH') {
      if (fitting('subscriptions', 'patch_request', body)) return unfit()
      for (const { op, path, value } of body) {
        const sequence = /^\/plan\/billing_cycles\/@sequence==(\d+)\/pricing_scheme\/fixed_price$/.exec(path)?.[1]
        if (op !== 'replace' || !sequence || fitting('subscriptions', 'money', value)) return unfit()
        subscription.price = value
      }
      return { status: 204 }
    }
    return { status: 200, body: shown(subscription) }
  }

  function paged(path: string, query: URLSearchParams, all: Any[]) {
    const page = Number(query.get('page') ?? 1)
    const total_pages = Math.ceil(all.length / terms.page)
    const next = new URLSearchParams({ ...Object.fromEntries(query), page: `${page + 1}` })
    const result = {
      transactions: all.slice((page - 1) * terms.page, page * terms.page),
      ...{ total_items: all.length, total_pages },
      links:
        page < total_pages ? [{ rel: 'next', href: `https://api-m.paypal.com${path}?${next}`, method: 'GET' }] : [],
    }
    return result
  }

  function grant(headers: Record<string, string>, body: unknown): VendorResponse {
    const basic = `Basic ${Buffer.from(`${PAYPAL_CLIENT.id}:${PAYPAL_CLIENT.secret}`).toString('base64')}`
    if (headers.authorization !== basic)
      return { status: 401, body: { error: 'invalid_client', error_description: 'Client Authentication failed' } }
    if (body !== 'grant_type=client_credentials') return { status: 400, body: { error: 'unsupported_grant_type' } }
    const access_token = newId('A21AA')
    tokens.add(access_token)
    return {
      status: 200,
      body: { scope: '', access_token, token_type: 'Bearer', app_id: 'APP', expires_in: terms.expires },
    }
  }

  function begin(body: Any): VendorResponse {
    if (fitting('subscriptions', 'subscription_request_post', body)) return unfit()
    const plan = plans.get(body.plan_id)
    if (!plan) return gone()
    const regular = plan.billing_cycles.find((cycle: Any) => cycle.tenure_type === 'REGULAR')
    const [override] = body.plan?.billing_cycles ?? []
    if (override && override.sequence !== regular.sequence)
      return { status: 422, body: errorBody(422, 'UNPROCESSABLE_ENTITY', 'INVALID_BILLING_CYCLE_SEQUENCE') }
    const price = override?.pricing_scheme.fixed_price ?? regular.pricing_scheme.fixed_price
    if (price.currency_code !== regular.pricing_scheme.fixed_price.currency_code)
      return { status: 422, body: errorBody(422, 'UNPROCESSABLE_ENTITY', 'CURRENCY_MISMATCH') }
    const id = newId('I-').toUpperCase()
    const subscription = {
      ...{
        id,
        status: 'APPROVAL_PENDING',
        plan_id: body.plan_id,
        custom_id: body.custom_id,
        quantity: '1',
        start_time: time(),
      },
      ...{ create_time: time(), update_time: time(), status_update_time: time(), plan_overridden: !!override },
      ...(body.subscriber && { subscriber: body.subscriber }),
      price,
    }
    subscriptions.set(id, subscription)
    const links = [
      { href: `https://www.paypal.com/webapps/billing/subscriptions?ba_token=BA-${id}`, rel: 'approve', method: 'GET' },
    ]
    const { price: _, ...rest } = subscription
    fitting('subscriptions', 'subscription', { ...rest, links })
    return { status: 201, body: { ...rest, links } }
  }

  function shown({ price: _, ...subscription }: Any) {
    fitting('subscriptions', 'subscription', subscription)
    return subscription
  }

  function verify(body: Any): VendorResponse {
    if (fitting('webhooks', 'verify_webhook_signature', body)) return unfit()
    const one = signed.get(body.transmission_sig)
    const same =
      one && one.id === body.transmission_id && one.time === body.transmission_time && one.webhook === body.webhook_id
    const fits = same && one.event === JSON.stringify(body.webhook_event)
    return { status: 200, body: { verification_status: fits ? 'SUCCESS' : 'FAILURE' } }
  }

  function happened(event_type: string, resource: Any, more: object = {}) {
    const event = {
      ...{ id: newId('WH-').toUpperCase(), event_version: '1.0', create_time: new Date(now()).toISOString() },
      ...{ resource_type: event_type.startsWith('PAYMENT.SALE') ? 'sale' : 'subscription', resource_version: '2.0' },
      ...{ event_type, summary: event_type, resource: structuredClone(resource), links: [], ...more },
    }
    fitting('webhooks', 'event', event)
    events.push(event)
    return event
  }

  function become(id: string, status: string, type = status) {
    const subscription = subscriptions.get(id)
    Object.assign(subscription, { status, status_update_time: time(), update_time: time() })
    return happened(`BILLING.SUBSCRIPTION.${type}`, shown(subscription))
  }

  function bill(id: string, at = now()) {
    const subscription = subscriptions.get(id)
    const { billing_info: info, price } = subscription
    const regular = info.cycle_executions.find((cycle: Any) => cycle.tenure_type === 'REGULAR')
    regular.cycles_completed++
    info.last_payment = { amount: price, time: time(at) }
    info.failed_payments_count = 0
    info.outstanding_balance = { currency_code: price.currency_code, value: '0.0' }
    const next = new Date(info.next_billing_time ?? at)
    next.setUTCMonth(next.getUTCMonth() + 1)
    info.next_billing_time = time(next.getTime())
    const sale = newId('').toUpperCase()
    const transaction = {
      id: sale,
      status: 'COMPLETED',
      time: time(at),
      amount_with_breakdown: { gross_amount: price },
    }
    fitting('subscriptions', 'transaction', transaction)
    transactions.set(id, [...(transactions.get(id) ?? []), transaction])
    happened('PAYMENT.SALE.COMPLETED', {
      ...{
        id: sale,
        billing_agreement_id: id,
        custom: subscription.custom_id,
        state: 'completed',
        payment_mode: 'INSTANT_TRANSFER',
      },
      ...{ amount: { total: price.value, currency: price.currency_code, details: { subtotal: price.value } } },
      ...{ create_time: time(at), update_time: time(at), protection_eligibility: 'ELIGIBLE' },
    })
    return sale
  }

  const vendor = await startVendor({
    read: (text, type) => (type.includes('json') ? JSON.parse(text) : text),
    answer,
    refusal: (status, code) => errorBody(status, code.toUpperCase()),
    keyHeader: 'paypal-request-id',
    reused: { status: 422, body: errorBody(422, 'UNPROCESSABLE_ENTITY', 'DUPLICATE_REQUEST_ID') },
  })

  return {
    ...vendor,
    ...{ terms, events, plans, subscriptions, transactions, flaws, check, happened, become, bill },
    connection: (webhookId: string | string[] = PAYPAL_WEBHOOK_ID) => ({
      ...{ name: 'PayPal', kind: 'paypal', metadata: { apiUrl: vendor.url, clientId: PAYPAL_CLIENT.id } },
      authentication: { clientSecret: PAYPAL_CLIENT.secret, webhookId },
    }),
    /** Adds a plan that can be bought, with a trial if there is one. */
    plan(id: string, value: string, currency_code = 'USD', trial = false) {
      const cycle = (tenure_type: string, sequence: number, value: string) => ({
        ...{ tenure_type, sequence, total_cycles: tenure_type === 'TRIAL' ? 1 : 0 },
        ...{ frequency: { interval_unit: 'MONTH', interval_count: 1 } },
        pricing_scheme: { fixed_price: { currency_code, value } },
      })
      const regular = cycle('REGULAR', trial ? 2 : 1, value)
      const plan = {
        ...{ id, product_id: 'PROD-XXCD1234', name: 'Plan', status: 'ACTIVE' },
        ...{ billing_cycles: trial ? [cycle('TRIAL', 1, '0'), regular] : [regular] },
      }
      fitting('subscriptions', 'plan', plan)
      plans.set(id, plan)
    },
    /** Approves a subscription, and makes the first payment. */
    approve(id: string) {
      const subscription = subscriptions.get(id)
      const { currency_code } = subscription.price
      subscription.billing_info = {
        ...{ outstanding_balance: { currency_code, value: '0.0' }, failed_payments_count: 0 },
        cycle_executions: [
          { tenure_type: 'REGULAR', sequence: 1, cycles_completed: 0, cycles_remaining: 0, total_cycles: 0 },
        ],
      }
      const at = events.length
      const sale = bill(id)
      become(id, 'ACTIVE', 'ACTIVATED')
      events.push(...events.splice(at, 1))
      return sale
    },
    fail(id: string) {
      const { billing_info: info, price } = subscriptions.get(id)
      info.failed_payments_count++
      info.outstanding_balance = price
      info.last_failed_payment = { amount: price, time: time(), reason_code: 'PAYER_CANNOT_PAY' }
      return happened('BILLING.SUBSCRIPTION.PAYMENT.FAILED', shown(subscriptions.get(id)))
    },
    /** Returns an event as a webhook of this id. */
    signEvent(event: Any, webhook = PAYPAL_WEBHOOK_ID, raw = JSON.stringify(event)): SignedWebhook {
      const [id, at, signature] = [crypto.randomUUID(), time(), `sig${crypto.randomUUID()}=`]
      signed.set(signature, { id, time: at, webhook, event: JSON.stringify(JSON.parse(raw)) })
      return {
        raw,
        headers: {
          ...{ 'content-type': 'application/json', 'paypal-auth-algo': 'SHA256withRSA', 'paypal-transmission-id': id },
          ...{ 'paypal-transmission-time': at, 'paypal-transmission-sig': signature },
          'paypal-cert-url': 'https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-5a29e601',
        },
      }
    },
  }
}
export type PaypalVendor = Awaited<ReturnType<typeof startPaypal>>
