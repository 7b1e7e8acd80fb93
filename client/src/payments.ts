import { type Init, type Transport, toSegment } from './transport'
import type { Page } from './workspaces'

export type AtollPlan = {
  _id: string
  name: string
  description: string
  monthlyPrice: number | null
  yearlyPrice: number | null
  currency: string
  dynamic: boolean
  isActive: boolean
  features: string[]
  limits: Record<string, unknown>
  metadata: Record<string, unknown>
}
type BillingCycle = 'monthly' | 'yearly'
type SubscriptionStatus = 'pending' | 'active' | 'trialing' | 'past_due' | 'canceled' | 'expired'
export type AtollSubscription = {
  _id: string
  planId: string
  billableEntityType: 'user' | 'workspace'
  billableEntityId: string
  status: SubscriptionStatus
  billingCycle: BillingCycle
  currency: string
  basePrice: number | null
  finalPrice: number | null
  couponCode: string | null
  couponBenefitEndsAt: string | null
  currentPeriodStart: string | null
  currentPeriodEnd: string | null
  trialEndsAt: string | null
  cancelAtPeriodEnd: boolean
  created: string
  updated: string
}
export type AtollInvoice = {
  _id: string
  subscriptionId: string
  amount: number
  currency: string
  status: 'paid' | 'open' | 'void'
  invoiceUrl: string | null
  paidAt: string | null
  periodStart: string | null
  periodEnd: string | null
  items: { description: string; quantity: number; amount: number }[]
  created: string
}
export type AtollCoupon = {
  code: string
  discountType: 'percentage' | 'fixed'
  discountValue: number
  currency: string | null
  validUntil: string | null
}
export type CheckoutRequest = ({ planId: string; billingCycle: BillingCycle } | { subscriptionId: string }) & {
  couponCode?: string
  /** Where the provider leads the browser back to. */
  successUrl?: string
  cancelUrl?: string
  customer?: { name?: string; email?: string }
  /** Cancels the active subscription first. */
  reset?: boolean
}
/** Plans, and the subscription of the caller, or of the workspace that they work in. */
export function createPayments({ get, post, put }: Transport) {
  return {
    /**
     * The plans that can be subscribed to; nobody has to be signed in.
     * @example
     * for (const plan of await client.payments.plans()) console.log(plan.name, plan.monthlyPrice, plan.currency)
     */
    plans: (page: Page = {}, init: Init = {}) => get<AtollPlan[]>('/api/plans/public', page, init),
    /**
     * A coupon that can be used now, for the plan if one is given.
     * @example
     * const coupon = await client.payments.coupon('FREE', plan._id)
     */
    coupon: (code: string, planId?: string, init: Init = {}) =>
      post<AtollCoupon>('/api/coupons/validate', { code, ...(planId && { planId }) }, init),
    /**
     * Starts a checkout: the browser goes to `checkoutUrl`, or a provider's own form takes `clientToken`. Without either,
     * the subscription is free and active.
     * @example
     * const { checkoutUrl } = await client.payments.checkout({ planId: plan._id, billingCycle: 'monthly', couponCode: 'FREE' })
     * if (checkoutUrl) location.assign(checkoutUrl)
     */
    checkout: (checkout: CheckoutRequest, init: Init = {}) =>
      post<{ subscriptionId: string; checkoutUrl: string | null; clientToken: string | null }>(
        '/api/checkout',
        checkout,
        init,
      ),
    /**
     * The active subscription with the limits of its plan, or null.
     * @example
     * const subscription = await client.payments.subscription()
     * console.log(subscription?.status, subscription?.currentPeriodEnd)
     */
    subscription: (init: Init = {}) =>
      get<(AtollSubscription & { limits: Record<string, unknown> }) | null>('/api/subscriptions/me', {}, init),
    /**
     * All subscriptions, ended ones too.
     * @example
     * const ended = await client.payments.subscriptions({ status: 'canceled' })
     */
    subscriptions: (query: Page & { status?: SubscriptionStatus } = {}, init: Init = {}) =>
      get<AtollSubscription[]>('/api/subscriptions', query, init),
    /**
     * The invoices.
     * @example
     * for (const invoice of await client.payments.invoices({ status: 'paid' })) console.log(invoice.invoiceUrl)
     */
    invoices: (query: Page & { status?: AtollInvoice['status'] } = {}, init: Init = {}) =>
      get<AtollInvoice[]>('/api/invoices', query, init),
    /**
     * Cancels a subscription.
     * @example
     * const subscription = await client.payments.subscription()
     * if (subscription) await client.payments.cancel(subscription._id)
     */
    cancel: (subscription: string, init: Init = {}) =>
      put<AtollSubscription>(`/api/subscriptions/${toSegment(subscription)}/cancel`, undefined, init),
  }
}
