import { attempt, by, Refusal, unlessGone } from './asking'
import { missingPrice } from './failure'
import { toPaypal } from './paypal/amounts'
import { type Connected, paypalAnswers } from './paypal/api'
import { eventOf, type PaypalSubscription, standingOf } from './paypal/events'
import { transactionsOf } from './paypal/transactions'
import type { Order, Provider } from './provider'
import { named, secretsOf, textOf } from './signed'

/** https://developer.paypal.com/docs/api/subscriptions/v1 */
export const paypal: Provider<'paypal'> = {
  refuse(_, { externalIds, billingCycle }) {
    if (!externalIds[planNames[billingCycle]]) throw missingPrice('paypal', planNames[billingCycle])
  },

  async createCheckout(opened, order) {
    paypal.refuse?.(opened, order)
    return by('paypal', async () => {
      const json = await subscriptionOf(opened, order)
      const made = await paypalAnswers<PaypalSubscription & { links?: Link[] }>(opened, SUBSCRIPTIONS, {
        ...{ method: 'POST', key: order.key, json },
      })
      const checkoutUrl = named(made.links?.find(({ rel }) => rel === 'approve')?.href)
      const externalSubscriptionId = named(made.id)
      if (!checkoutUrl || !externalSubscriptionId) throw new Refusal('paypal', 200, 'no_subscription')
      return { checkoutUrl, clientToken: null, externalSubscriptionId }
    })
  },

  cancel: (opened, { externalSubscriptionId: id }) =>
    by('paypal', async () => {
      if (!id) return true
      const question = { method: 'POST', key: attempt('cancel', id), json: { reason: 'Canceled by the customer.' } }
      const asked = paypalAnswers(opened, `${pathOf(id)}/cancel`, question)
      return asked.then(
        () => true,
        (error) => unlessEnded(opened, id, error),
      )
    }),

  reprice: (opened, { _id, externalSubscriptionId: id, currency }, amount) =>
    by('paypal', async () => {
      if (!id) return
      const found = await unlessGone(paypalAnswers<PaypalSubscription>(opened, pathOf(id)), 404)
      if (!found) return
      const regular = found.billing_info?.cycle_executions?.find(({ tenure_type }) => tenure_type === 'REGULAR')
      const path = `/plan/billing_cycles/@sequence==${regular?.sequence ?? 1}/pricing_scheme/fixed_price`
      const json = [{ op: 'replace', path, value: toPaypal(amount, currency) }]
      await paypalAnswers(opened, pathOf(id), { method: 'PATCH', key: attempt('reprice', _id, amount), json })
    }),

  fetchSubscription: (opened, externalId) =>
    by('paypal', async () => {
      const found = await unlessGone(paypalAnswers<PaypalSubscription>(opened, pathOf(externalId)), 404)
      if (!found) return
      const invoices = await transactionsOf(opened, pathOf(externalId), found)
      const { status = 'pending', ...standing } = standingOf(found)
      return { externalSubscriptionId: externalId, status, ...standing, invoices }
    }),

  webhookSecrets: ({ authentication }) => secretsOf(authentication.webhookId),

  async verifyWebhook(opened, raw, headers) {
    const event = textOf(raw)
    const told = Object.entries(HEADERS).map(([name, header]) => [name, headers.get(header)] as const)
    if (!event || !isJson(event) || told.some(([, value]) => !value)) return false
    const ids = secretsOf(opened.authentication.webhookId)
    const asked = ids.map((id) =>
      by('paypal', () => isVerified(opened, { ...Object.fromEntries(told), webhook_id: id }, event)),
    )
    return some(asked)
  },

  parseEvent: eventOf,
}

/**
 * One that is over already can't be canceled (422), nor one that was not approved yet: that may still begin. Answers
 * whether it is over.
 */
async function unlessEnded(opened: Connected, id: string, error: unknown): Promise<boolean> {
  if (!(error instanceof Refusal) || ![404, 422].includes(error.status)) throw error
  const found = await unlessGone(paypalAnswers<PaypalSubscription>(opened, pathOf(id)), 404)
  if (found && RUNNING.includes(found.status ?? '')) throw error
  return found?.status !== 'APPROVAL_PENDING'
}
const RUNNING = ['APPROVED', 'ACTIVE', 'SUSPENDED']

const SUBSCRIPTIONS = 'v1/billing/subscriptions'
const pathOf = (id: string) => `${SUBSCRIPTIONS}/${encodeURIComponent(id)}`
const planNames = { monthly: 'monthlyPlanId', yearly: 'yearlyPlanId' } as const

type Link = { rel: string; href: string }

async function subscriptionOf(opened: Connected, order: Order) {
  const { externalIds, billingCycle, subscriptionId, customer, successUrl, cancelUrl, dynamic, discount } = order
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
    ...((dynamic || discount) && { plan: await priced(opened, plan_id, order) }),
  }
}

/** The plan with a price of its own: that of its regular cycle, which comes after those of a trial. */
async function priced(opened: Connected, plan: string, { amount, currency }: Order) {
  type Plan = { billing_cycles?: { tenure_type: string; sequence: number }[] }
  const known = await unlessGone(paypalAnswers<Plan>(opened, `v1/billing/plans/${encodeURIComponent(plan)}`), 403, 404)
  const sequence = known?.billing_cycles?.find(({ tenure_type }) => tenure_type === 'REGULAR')?.sequence ?? 1
  return { billing_cycles: [{ sequence, pricing_scheme: { fixed_price: toPaypal(amount, currency) } }] }
}

const HEADERS = {
  auth_algo: 'paypal-auth-algo',
  cert_url: 'paypal-cert-url',
  transmission_id: 'paypal-transmission-id',
  transmission_sig: 'paypal-transmission-sig',
  transmission_time: 'paypal-transmission-time',
}

/** PayPal says itself whether it was PayPal. It gets the event as it came: a signature is about bytes. */
async function isVerified(opened: Connected, told: Record<string, unknown>, event: string) {
  const body = `${JSON.stringify(told).slice(0, -1)},"webhook_event":${event}}`
  type Verified = { verification_status?: string }
  const question = { method: 'POST', body }
  const answer = await unlessGone(paypalAnswers<Verified>(opened, VERIFY, question), 400, 422)
  return answer?.verification_status === 'SUCCESS'
}
const VERIFY = 'v1/notifications/verify-webhook-signature'

/** Whether one of them is true. Where none is, and one could not be found out, that is thrown. */
async function some(asked: Promise<boolean>[]) {
  const found = await Promise.allSettled(asked)
  if (found.some((one) => one.status === 'fulfilled' && one.value)) return true
  for (const one of found) if (one.status === 'rejected') throw one.reason
  return false
}

/** Any JSON, and nothing that would end it within another. */
function isJson(text: string) {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
