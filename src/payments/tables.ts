import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'
import type { Cycle, Span } from './billing-period'
import type { Discount } from './money'
import type { Status } from './subscriptions/transitions'

/** The kinds of connections that process payments. */
export type ProviderKind = 'stripe' | 'paypal' | 'paddle'

/** The ids of a plan at a provider: of a product and its prices, or of the provider's plans. */
export type ExternalIds = {
  productId?: string
  monthlyPriceId?: string
  yearlyPriceId?: string
  monthlyPlanId?: string
  yearlyPlanId?: string
}
export type EntityType = 'user' | 'workspace'

/** A pause at the provider: when it began, when it ends (null: when somebody resumes it), and the reason. */
export type Pause = { since: string; resumes: string | null; reason: string }

/** The subscription in force that keeps another one, which is paid as well, from coming into force. */
export type Conflict = { subscriptionId: string; since: string }

/** A `checkoutAmount` that is no amount: the checkouts of the subscription have different ones. */
export const VARYING_CHECKOUT_AMOUNT = -1

/** Plans to subscribe to. Prices are in minor units. */
export const plans = sqliteTable('plans', {
  _id: text().primaryKey(),
  name: text().notNull(),
  description: text().notNull(),
  monthlyPrice: integer('monthly_price'),
  yearlyPrice: integer('yearly_price'),
  currency: text().notNull(),
  /** Whether an admin sets the price of each subscription. */
  dynamic: integer({ mode: 'boolean' }).notNull(),
  isActive: integer('is_active', { mode: 'boolean' }).notNull(),
  features: text({ mode: 'json' }).$type<string[]>().notNull(),
  sortOrder: integer('sort_order').notNull(),
  limits: text({ mode: 'json' }).$type<Record<string, unknown>>().notNull(),
  metadata: text({ mode: 'json' }).$type<Record<string, unknown>>().notNull(),
  externalIds: text('external_ids', { mode: 'json' }).$type<Partial<Record<ProviderKind, ExternalIds>>>().notNull(),
  created: timestamp().notNull(),
  updated: timestamp().notNull(),
})
export type Plan = typeof plans.$inferSelect

export const coupons = sqliteTable('coupons', {
  _id: text().primaryKey(),
  code: text().notNull(),
  /** The normalized code, for comparisons. */
  codeKey: text('code_key').notNull().unique(),
  discount: text({ mode: 'json' }).$type<Discount>().notNull(),
  /** The currency of a fixed discount, which applies only to prices in it. */
  currency: text(),
  maxRedemptions: integer('max_redemptions'),
  currentRedemptions: integer('current_redemptions').notNull(),
  validFrom: timestamp('valid_from'),
  validUntil: timestamp('valid_until'),
  /** How long the discount lasts after its redemption; null: forever. */
  benefit: text({ mode: 'json' }).$type<Span>(),
  applicablePlanIds: text('applicable_plan_ids', { mode: 'json' }).$type<string[]>().notNull(),
  isActive: integer('is_active', { mode: 'boolean' }).notNull(),
  created: timestamp().notNull(),
  updated: timestamp().notNull(),
})
export type Coupon = typeof coupons.$inferSelect

/**
 * The subscriptions of entities to plans. Only `subscriptions/state-machine.ts` changes a status. Amounts are in minor units.
 */
export const subscriptions = sqliteTable(
  'subscriptions',
  {
    _id: text().primaryKey(),
    planId: text('plan_id').notNull(),
    billableEntityType: text('billable_entity_type').$type<EntityType>().notNull(),
    billableEntityId: text('billable_entity_id').notNull(),
    status: text().$type<Status>().notNull(),
    billingCycle: text('billing_cycle').$type<Cycle>().notNull(),
    currency: text().notNull(),
    /** The price of each cycle before the discount; null until an admin has set it. */
    basePrice: integer('base_price'),
    dynamicAmount: integer('dynamic_amount'),
    couponId: text('coupon_id'),
    couponCode: text('coupon_code'),
    /** The discount of the coupon and its duration, as they were when the coupon was attached. */
    discount: text({ mode: 'json' }).$type<Discount & { benefit: Span | null }>(),
    couponBenefitEndsAt: timestamp('coupon_benefit_ends_at'),
    currentPeriodStart: timestamp('current_period_start'),
    currentPeriodEnd: timestamp('current_period_end'),
    trialEndsAt: timestamp('trial_ends_at'),
    /** Since when a payment is overdue. */
    pastDueSince: timestamp('past_due_since'),
    cancelAtPeriodEnd: integer('cancel_at_period_end', { mode: 'boolean' }).notNull(),
    /** When its cancellation was requested, while the provider has not confirmed it yet. */
    cancelRequested: timestamp('cancel_requested'),
    providerKind: text('provider_kind').$type<ProviderKind>(),
    /** The connection to the provider. */
    providerSourceId: text('provider_source_id'),
    externalSubscriptionId: text('external_subscription_id'),
    /** The provider's id of the checkout, if checkouts have ids of their own there. */
    externalCheckoutId: text('external_checkout_id'),
    /** Until when (ms) a checkout is being started, so that no other checkout of the entity may start. */
    checkoutUntil: integer('checkout_until'),
    /** The price per cycle of the started checkouts; `VARYING_CHECKOUT_AMOUNT` if they differ, since any may be paid. */
    checkoutAmount: integer('checkout_amount'),
    /** How many checkouts have failed. It gives the next one another idempotency key. */
    failedCheckouts: integer('failed_checkouts').notNull(),
    /** The time (ms, by the provider's clock) of the last applied event. Older events are ignored. */
    lastEventAt: integer('last_event_at'),
    metadata: text({ mode: 'json' }).$type<Record<string, unknown>>().notNull(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
    /** The reported difference from the provider's state, as JSON, if it could not be repaired. */
    drift: text(),
    pause: text({ mode: 'json' }).$type<Pause>(),
    conflict: text({ mode: 'json' }).$type<Conflict>(),
    /** Whether somebody asked for its end, or the provider reported it. Null for old rows. */
    endedBy: text('ended_by').$type<'request' | 'provider'>(),
    /** The start of its first period. Computed periods are counted from it, so that the 31st stays the 31st. */
    periodAnchor: timestamp('period_anchor'),
  },
  ({ billableEntityType, billableEntityId, providerKind, externalSubscriptionId, ...by }) => [
    uniqueIndex('subscriptions_in_force')
      .on(billableEntityType, billableEntityId)
      .where(sql`status in ('active', 'trialing')`),
    uniqueIndex('subscriptions_at_provider')
      .on(providerKind, externalSubscriptionId)
      .where(sql`external_subscription_id is not null`),
    index('subscriptions_of_checkout').on(by.externalCheckoutId).where(sql`external_checkout_id is not null`),
    index('subscriptions_of_entity').on(billableEntityType, billableEntityId, by.created, by._id),
    index('subscriptions_of_plan').on(by.planId, by.created, by._id),
    index('subscriptions_by_status').on(by.status, by.created, by._id),
    index('subscriptions_by_time').on(by.created, by._id),
  ],
)
export type Subscription = typeof subscriptions.$inferSelect

/** The redemptions of coupons: a subscription redeems a coupon once. */
export const redemptions = sqliteTable(
  'redemptions',
  { subscription: text().notNull(), coupon: text().notNull(), created: timestamp().notNull() },
  ({ subscription, coupon }) => [primaryKey({ columns: [subscription, coupon] })],
)

export type InvoiceItem = { description: string; quantity: number; amount: number }

/** Invoices, as providers report them. Amounts, including those of items, are in minor units. */
export const invoices = sqliteTable(
  'invoices',
  {
    _id: text().primaryKey(),
    subscriptionId: text('subscription_id').notNull(),
    billableEntityType: text('billable_entity_type').$type<EntityType>().notNull(),
    billableEntityId: text('billable_entity_id').notNull(),
    amount: integer().notNull(),
    currency: text().notNull(),
    status: text().$type<'paid' | 'open' | 'void'>().notNull(),
    providerKind: text('provider_kind').$type<ProviderKind>().notNull(),
    externalInvoiceId: text('external_invoice_id').notNull(),
    invoiceUrl: text('invoice_url'),
    paidAt: timestamp('paid_at'),
    periodStart: timestamp('period_start'),
    periodEnd: timestamp('period_end'),
    items: text({ mode: 'json' }).$type<InvoiceItem[]>().notNull(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
    /** When admins were told to give the payment back. */
    refundOffered: timestamp('refund_offered'),
  },
  ({ providerKind, externalInvoiceId, billableEntityType, billableEntityId, subscriptionId, created, _id }) => [
    uniqueIndex('invoices_at_provider').on(providerKind, externalInvoiceId),
    index('invoices_of_entity').on(billableEntityType, billableEntityId, created, _id),
    index('invoices_of_subscription').on(subscriptionId, created),
    index('invoices_by_time').on(created, _id),
  ],
)
export type Invoice = typeof invoices.$inferSelect

/** The events of providers, as they were received. An event is stored with its effect, and has it once. */
export const providerEvents = sqliteTable(
  'provider_events',
  {
    _id: text().primaryKey(),
    providerKind: text('provider_kind').$type<ProviderKind>().notNull(),
    eventId: text('event_id').notNull(),
    type: text().notNull(),
    /** The connection whose secret verified the signature. */
    source: text(),
    body: text().notNull(),
    status: text().$type<'received' | 'processed' | 'ignored' | 'parked' | 'failed'>().notNull(),
    /** When it happened, by the provider's clock (ms). */
    occurredAt: integer('occurred_at').notNull(),
    attempts: integer().notNull(),
    /** When (ms) the event is retried. */
    nextAt: integer('next_at'),
    /** The id of our subscription, once it is known. */
    subscriptionId: text('subscription_id'),
    /** The provider's id of the subscription, for which a parked event waits. */
    externalSubscriptionId: text('external_subscription_id'),
    /** A sentence that says why the event was parked, failed or ignored. */
    outcome: text(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
  },
  ({ providerKind, eventId, nextAt, status, created, _id, subscriptionId, externalSubscriptionId }) => [
    uniqueIndex('provider_events_once').on(providerKind, eventId),
    index('provider_events_due').on(nextAt).where(sql`next_at is not null`),
    index('provider_events_by_status').on(status, created, _id),
    index('provider_events_by_time').on(created, _id),
    index('provider_events_parked').on(externalSubscriptionId).where(sql`status = 'parked'`),
    index('provider_events_of_subscription').on(subscriptionId, created),
  ],
)
export type ProviderEventRow = typeof providerEvents.$inferSelect
