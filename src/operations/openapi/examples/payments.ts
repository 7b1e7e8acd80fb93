import { created, id, later, otherId, times } from './stand-ins'

const price = { name: 'Pro', monthlyPrice: 19.9, yearlyPrice: 199, currency: 'EUR', features: ['Ten workspaces'] }
const plan = {
  ...{ _id: id, description: '', dynamic: false, isActive: true, sortOrder: 0, limits: { todos: 100 }, metadata: {} },
  ...{ ...price, ...times },
}
const newCoupon = { code: 'SPRING', discountType: 'percentage', discountValue: 20, maxRedemptions: 100 }
const coupon = {
  ...{ _id: id, ...newCoupon, currency: null, validFrom: null, validUntil: null, benefitDurationUnit: 'months' },
  ...{ benefitDurationValue: 3, applicablePlanIds: [], isActive: true, currentRedemptions: 7, ...times },
}
const subscription = {
  ...{ _id: id, planId: otherId, billableEntityType: 'user', billableEntityId: id, status: 'active' },
  ...{ billingCycle: 'monthly', currency: 'EUR', basePrice: 19.9, finalPrice: 19.9, dynamicAmount: null },
  ...{ couponId: null, couponCode: null, couponBenefitEndsAt: null, currentPeriodStart: created },
  ...{ currentPeriodEnd: later, trialEndsAt: null, cancelAtPeriodEnd: false },
  ...{ cancelRequested: null, providerKind: 'stripe', providerSourceId: otherId, externalSubscriptionId: 'sub_1' },
  ...{ pause: null, metadata: {}, ...times },
}
const providerEvent = {
  ...{ _id: id, providerKind: 'stripe', eventId: 'evt_1', type: 'invoice.paid', status: 'processed' },
  ...{ outcome: null, sourceId: otherId, subscriptionId: id, externalSubscriptionId: 'sub_1', attempts: 1 },
  ...{ nextAttempt: null, occurredAt: created, ...times },
}

/** Examples of payments, by the names of their schemas. */
export const paymentExamples: Record<string, unknown> = {
  NewPlan: price,
  PlanChange: { description: 'For teams' },
  Plan: plan,
  PricePreviewRequest: { billingCycle: 'monthly', couponCode: 'SPRING', payments: 12 },
  PricePreview: {
    ...{ currency: 'EUR', billingCycle: 'monthly', basePrice: 19.9, couponBenefitEndsAt: later, isFree: false },
    ...{ total: 15.92, payments: [{ date: created, periodEnd: later, amount: 15.92, reason: 'coupon' }] },
  },
  NewCoupon: newCoupon,
  CouponChange: { isActive: false },
  CouponCode: { code: 'SPRING', planId: id },
  Coupon: coupon,
  NewSubscription: { planId: otherId, billingCycle: 'monthly', billableEntityType: 'user', billableEntityId: id },
  Subscription: subscription,
  OwnSubscription: { ...subscription, limits: { todos: 100 } },
  WorkspaceSubscription: { ...subscription, billableEntityType: 'workspace', planId: plan },
  SubscriptionStatistics: {
    countByStatus: { pending: 3, active: 120, trialing: 8, past_due: 2, canceled: 31, expired: 4 },
    monthlyRevenue: [{ currency: 'EUR', amount: 2388, subscriptions: 120 }],
  },
  DynamicAmount: { amount: 49.5 },
  Cancellation: { atPeriodEnd: false },
  CouponAttachment: { couponCode: 'SPRING' },
  NewCheckout: {
    ...{ planId: otherId, billingCycle: 'monthly' },
    ...{ successUrl: 'https://app.example.com/thanks', cancelUrl: 'https://app.example.com/plans' },
  },
  Checkout: { subscriptionId: id, checkoutUrl: 'https://checkout.stripe.com/c/pay/cs_1', clientToken: null },
  Invoice: {
    ...{ _id: id, subscriptionId: otherId, billableEntityType: 'user', billableEntityId: id, amount: 19.9 },
    ...{ currency: 'EUR', status: 'paid', externalInvoiceId: 'in_1', providerKind: 'stripe', paidAt: created },
    ...{ invoiceUrl: 'https://invoice.stripe.com/i/1', periodStart: created, periodEnd: later, ...times },
    items: [{ description: 'Pro, monthly', quantity: 1, amount: 19.9 }],
  },
  PaymentsConfigurationChange: { metadata: { defaultCurrency: 'EUR' } },
  PaymentsConfiguration: {
    key: 'payments-configuration',
    metadata: { isEnabled: true, paymentSourceId: otherId, defaultCurrency: 'EUR', gracePeriodDays: 3 },
  },
  ProviderEvent: providerEvent,
  ProviderEventDetails: { ...providerEvent, body: { id: 'evt_1', type: 'invoice.paid', created: 1_769_860_800 } },
  ProviderEventReceipt: { status: 'processed' },
}
