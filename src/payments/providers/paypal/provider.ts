import { DAY_MS } from '../../../core/clock'
import { missingPriceProblem } from '../errors'
import { nonEmptyText, parseTime } from '../event-parser'
import type { CheckoutOrder, Provider } from '../provider'
import { attemptKey, callProvider, ignoreStatuses, ProviderResponseError } from '../provider-http'
import { decodeUtf8, toSecretList } from '../webhook-signature'
import { toPaypalMoney } from './amounts'
import { type PaypalConnection, requestPaypal } from './api'
import { type PaypalSubscription, parsePaypalEvent, toProviderState } from './events'
import { createPlaceholderInvoice, isPlaceholderInvoice } from './placeholder-invoices'
import { listPaidTransactions } from './transactions'

/**
 * PayPal documents no limit for the approval of subscriptions. Its approval tokens are valid for 3 hours by default, or for 72
 * (https://developer.paypal.com/api/nvp-soap/troubleshooting/10411, github.com/paypal/paypal-checkout-components/issues/369).
 */
const APPROVAL_WINDOW_MS = 3 * DAY_MS

/** PayPal (https://developer.paypal.com/docs/api/subscriptions/v1). */
export const paypal: Provider<'paypal'> = {
  assertPriceConfigured(_, { externalIds, billingCycle }) {
    if (!externalIds[planNames[billingCycle]]) throw missingPriceProblem('paypal', planNames[billingCycle])
  },

  async createCheckout(connection, order) {
    paypal.assertPriceConfigured?.(connection, order)
    return callProvider('paypal', async () => {
      const json = await toSubscriptionBody(connection, order)
      const created = await requestPaypal<PaypalSubscription & { links?: Link[] }>(connection, SUBSCRIPTIONS_PATH, {
        ...{ method: 'POST', key: order.key, json },
      })
      const checkoutUrl = nonEmptyText(created.links?.find(({ rel }) => rel === 'approve')?.href)
      const externalSubscriptionId = nonEmptyText(created.id)
      if (!checkoutUrl || !externalSubscriptionId) throw new ProviderResponseError('paypal', 200, 'no_subscription')
      return { checkoutUrl, clientToken: null, externalSubscriptionId }
    })
  },

  cancel: (connection, { externalSubscriptionId: id }) =>
    callProvider('paypal', async () => {
      if (!id) return true
      const request = { method: 'POST', key: attemptKey('cancel', id), json: { reason: 'Canceled by the customer.' } }
      const cancellation = requestPaypal(connection, `${subscriptionPath(id)}/cancel`, request)
      return cancellation.then(
        () => true,
        (error) => isEndedAfterError(connection, id, error),
      )
    }),

  reprice: (connection, { _id, externalSubscriptionId: id, currency }, amount) =>
    callProvider('paypal', async () => {
      if (!id) return
      const subscription = await ignoreStatuses(
        requestPaypal<PaypalSubscription>(connection, subscriptionPath(id)),
        404,
      )
      if (!subscription) return
      const regular = subscription.billing_info?.cycle_executions?.find(({ tenure_type }) => tenure_type === 'REGULAR')
      const path = `/plan/billing_cycles/@sequence==${regular?.sequence ?? 1}/pricing_scheme/fixed_price`
      const json = [{ op: 'replace', path, value: toPaypalMoney(amount, currency) }]
      await requestPaypal(connection, subscriptionPath(id), {
        method: 'PATCH',
        key: attemptKey('reprice', _id, amount),
        json,
      })
    }),

  fetchSubscription: (connection, externalId) =>
    callProvider('paypal', async () => {
      const subscription = await ignoreStatuses(
        requestPaypal<PaypalSubscription>(connection, subscriptionPath(externalId)),
        404,
      )
      if (!subscription) return
      const invoices = await listPaidTransactions(connection, subscriptionPath(externalId), subscription)
      const { status = 'pending', ...state } = toProviderState(subscription)
      const nextPaymentAttempt = parseTime(subscription.billing_info?.last_failed_payment?.next_payment_retry_time)
      return { externalSubscriptionId: externalId, status, ...state, nextPaymentAttempt, invoices }
    }),

  webhookSecrets: ({ authentication }) => toSecretList(authentication.webhookId),

  async verifyWebhook(connection, raw, headers) {
    const event = decodeUtf8(raw)
    const signature = Object.entries(SIGNATURE_HEADERS).map(([name, header]) => [name, headers.get(header)] as const)
    if (!event || !isJson(event) || signature.some(([, value]) => !value)) return false
    const ids = toSecretList(connection.authentication.webhookId)
    const verifications = ids.map((id) =>
      callProvider('paypal', () => isVerified(connection, { ...Object.fromEntries(signature), webhook_id: id }, event)),
    )
    return isAnyTrue(verifications)
  },

  verifiesRemotely: true,
  needsPaidStart: true,
  parseEvent: parsePaypalEvent,
  approvalWindowMs: APPROVAL_WINDOW_MS,
  createPlaceholderInvoice,
  isPlaceholderInvoice,
}

/**
 * PayPal refuses to cancel a subscription (422) that has ended, or is not approved yet and may still begin. Returns whether
 * it has ended.
 * @throws `error` for another failure, or when the subscription is running
 */
async function isEndedAfterError(connection: PaypalConnection, id: string, error: unknown): Promise<boolean> {
  if (!(error instanceof ProviderResponseError) || ![404, 422].includes(error.status)) throw error
  const subscription = await ignoreStatuses(requestPaypal<PaypalSubscription>(connection, subscriptionPath(id)), 404)
  if (subscription && RUNNING_STATUSES.includes(subscription.status ?? '')) throw error
  return subscription?.status !== 'APPROVAL_PENDING'
}
const RUNNING_STATUSES = ['APPROVED', 'ACTIVE', 'SUSPENDED']

const SUBSCRIPTIONS_PATH = 'v1/billing/subscriptions'
const subscriptionPath = (id: string) => `${SUBSCRIPTIONS_PATH}/${encodeURIComponent(id)}`
const planNames = { monthly: 'monthlyPlanId', yearly: 'yearlyPlanId' } as const

type Link = { rel: string; href: string }

async function toSubscriptionBody(connection: PaypalConnection, order: CheckoutOrder) {
  const { externalIds, billingCycle, subscriptionId, customer, successUrl, cancelUrl, isPlanPrice } = order
  const plan_id = externalIds[planNames[billingCycle]]!
  const [given_name, ...rest] = customer.name?.trim().split(/\s+/) ?? []
  const name = { given_name: given_name?.slice(0, 140), surname: rest.join(' ').slice(0, 140) || undefined }
  const subscriber = { ...(given_name && { name }), email_address: customer.email }
  const back = successUrl && cancelUrl && { return_url: successUrl, cancel_url: cancelUrl }
  return {
    plan_id,
    custom_id: subscriptionId,
    ...((customer.email || given_name) && { subscriber }),
    ...(back && { application_context: { ...back, user_action: 'SUBSCRIBE_NOW', shipping_preference: 'NO_SHIPPING' } }),
    ...(!isPlanPrice && { plan: await buildPlanOverride(connection, plan_id, order) }),
  }
}

/** Overrides the price of a plan's regular cycle, which comes after the cycles of a trial. */
async function buildPlanOverride(connection: PaypalConnection, plan: string, { amount, currency }: CheckoutOrder) {
  type Plan = { billing_cycles?: { tenure_type: string; sequence: number }[] }
  const storedPlan = await ignoreStatuses(
    requestPaypal<Plan>(connection, `v1/billing/plans/${encodeURIComponent(plan)}`),
    403,
    404,
  )
  const sequence = storedPlan?.billing_cycles?.find(({ tenure_type }) => tenure_type === 'REGULAR')?.sequence ?? 1
  return { billing_cycles: [{ sequence, pricing_scheme: { fixed_price: toPaypalMoney(amount, currency) } }] }
}

const SIGNATURE_HEADERS = {
  auth_algo: 'paypal-auth-algo',
  cert_url: 'paypal-cert-url',
  transmission_id: 'paypal-transmission-id',
  transmission_sig: 'paypal-transmission-sig',
  transmission_time: 'paypal-transmission-time',
}

/** Has PayPal verify a signature. The event is sent byte for byte, because the signature covers the bytes. */
async function isVerified(connection: PaypalConnection, signature: Record<string, unknown>, event: string) {
  const body = `${JSON.stringify(signature).slice(0, -1)},"webhook_event":${event}}`
  type Verified = { verification_status?: string }
  const request = { method: 'POST', body }
  const answer = await ignoreStatuses(requestPaypal<Verified>(connection, VERIFY_WEBHOOK_PATH, request), 400, 422)
  return answer?.verification_status === 'SUCCESS'
}
const VERIFY_WEBHOOK_PATH = 'v1/notifications/verify-webhook-signature'

/** Returns whether one of the promises is true. @throws the first rejection if none is true */
async function isAnyTrue(promises: Promise<boolean>[]) {
  const results = await Promise.allSettled(promises)
  if (results.some((result) => result.status === 'fulfilled' && result.value)) return true
  for (const result of results) if (result.status === 'rejected') throw result.reason
  return false
}

/** Returns whether a text is valid JSON, so that it can be embedded in other JSON safely. */
function isJson(text: string) {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
