import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import { timestamp } from '../storage/columns'
import type { Cycle, Span } from './billing-period'
import type { Discount } from './money'
import type { Status } from './subscriptions/transitions'

/** The kinds of connections by which payments are made. */
export type ProviderKind = 'stripe' | 'paypal' | 'paddle'

/** How a plan is called at a provider: for products and prices, or for plans. */
export type ExternalIds = {
  productId?: string
  monthlyPriceId?: string
  yearlyPriceId?: string
  monthlyPlanId?: string
  yearlyPlanId?: string
}
export type EntityType = 'user' | 'workspace'

/** No amount: that of one checkout is another than that of the next. */
export const VARYING_CHECKOUT_AMOUNT = -1

/** What can be subscribed to. Prices are in minor units. */
export const plans = sqliteTable(
  'plans',
  {
    _id: text().primaryKey(),
    name: text().notNull(),
    description: text().notNull(),
    monthlyPrice: integer('monthly_price'),
    yearlyPrice: integer('yearly_price'),
    currency: text().notNull(),
    /** Whether an admin says the price, for each subscription. */
    dynamic: integer({ mode: 'boolean' }).notNull(),
    isActive: integer('is_active', { mode: 'boolean' }).notNull(),
    features: text({ mode: 'json' }).$type<string[]>().notNull(),
    sortOrder: integer('sort_order').notNull(),
    limits: text({ mode: 'json' }).$type<Record<string, unknown>>().notNull(),
    metadata: text({ mode: 'json' }).$type<Record<string, unknown>>().notNull(),
    externalIds: text('external_ids', { mode: 'json' }).$type<Partial<Record<ProviderKind, ExternalIds>>>().notNull(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
  },
  ({ isActive, sortOrder, monthlyPrice, created, _id }) => [
    index('plans_by_order').on(isActive, sortOrder, monthlyPrice),
    index('plans_by_time').on(created, _id),
  ],
)
export type Plan = typeof plans.$inferSelect

export const coupons = sqliteTable(
  'coupons',
  {
    _id: text().primaryKey(),
    code: text().notNull(),
    /** The code as it is compared. */
    codeKey: text('code_key').notNull().unique(),
    discount: text({ mode: 'json' }).$type<Discount>().notNull(),
    /** Only of a fixed amount: in which it is, and to which it applies. */
    currency: text(),
    maxRedemptions: integer('max_redemptions'),
    currentRedemptions: integer('current_redemptions').notNull(),
    validFrom: timestamp('valid_from'),
    validUntil: timestamp('valid_until'),
    /** How long it lasts for who has redeemed it; forever, where nothing is said. */
    benefit: text({ mode: 'json' }).$type<Span>(),
    applicablePlanIds: text('applicable_plan_ids', { mode: 'json' }).$type<string[]>().notNull(),
    isActive: integer('is_active', { mode: 'boolean' }).notNull(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
  },
  ({ created, _id }) => [index('coupons_by_time').on(created, _id)],
)
export type Coupon = typeof coupons.$inferSelect

/** Who pays for which plan. Its status is changed by `subscriptions/machine.ts` alone. Amounts are in minor units. */
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
    /** What it costs each cycle; nothing while an admin has yet to say it. */
    basePrice: integer('base_price'),
    dynamicAmount: integer('dynamic_amount'),
    couponId: text('coupon_id'),
    couponCode: text('coupon_code'),
    /** What the coupon takes off and for how long, as it was when it was attached. */
    discount: text({ mode: 'json' }).$type<Discount & { benefit: Span | null }>(),
    couponBenefitEndsAt: timestamp('coupon_benefit_ends_at'),
    currentPeriodStart: timestamp('current_period_start'),
    currentPeriodEnd: timestamp('current_period_end'),
    trialEndsAt: timestamp('trial_ends_at'),
    /** Since when a payment is missing. */
    pastDueSince: timestamp('past_due_since'),
    cancelAtPeriodEnd: integer('cancel_at_period_end', { mode: 'boolean' }).notNull(),
    /** Since when it should end, though the provider has not agreed yet. */
    cancelRequested: timestamp('cancel_requested'),
    providerKind: text('provider_kind').$type<ProviderKind>(),
    /** The connection by which the provider is asked. */
    providerSourceId: text('provider_source_id'),
    externalSubscriptionId: text('external_subscription_id'),
    /** How the provider calls the checkout, where that has a name of its own. */
    externalCheckoutId: text('external_checkout_id'),
    /** Until when (ms) a checkout is being begun: no other of the same entity begins meanwhile. */
    checkoutUntil: integer('checkout_until'),
    /** What each cycle costs by the checkouts that were begun; `SEVERAL` where they differ, for any may be paid. */
    checkoutAmount: integer('checkout_amount'),
    /** How many checkouts have failed: the next one is another one to the provider. */
    failedCheckouts: integer('failed_checkouts').notNull(),
    /** When (ms, by the provider's clock) that happened which was applied last: what is older changes nothing. */
    lastEventAt: integer('last_event_at'),
    metadata: text({ mode: 'json' }).$type<Record<string, unknown>>().notNull(),
    created: timestamp().notNull(),
    updated: timestamp().notNull(),
    /** In what it differs from what the provider has, where that can't be mended: people were told. */
    drift: text(),
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

/** Which subscription has redeemed which coupon: once. */
export const redemptions = sqliteTable(
  'redemptions',
  { subscription: text().notNull(), coupon: text().notNull(), created: timestamp().notNull() },
  ({ subscription, coupon }) => [primaryKey({ columns: [subscription, coupon] })],
)

export type InvoiceItem = { description: string; quantity: number; amount: number }

/** What was or is to be paid, as providers tell it. Amounts are in minor units, also those of its items. */
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
  },
  ({ providerKind, externalInvoiceId, billableEntityType, billableEntityId, subscriptionId, created, _id }) => [
    uniqueIndex('invoices_at_provider').on(providerKind, externalInvoiceId),
    index('invoices_of_entity').on(billableEntityType, billableEntityId, created, _id),
    index('invoices_of_subscription').on(subscriptionId, created),
    index('invoices_by_time').on(created, _id),
  ],
)
export type Invoice = typeof invoices.$inferSelect

/** What providers have told, as it came. An event is kept before it has any effect, and has that once. */
export const providerEvents = sqliteTable(
  'provider_events',
  {
    _id: text().primaryKey(),
    providerKind: text('provider_kind').$type<ProviderKind>().notNull(),
    eventId: text('event_id').notNull(),
    type: text().notNull(),
    /** The connection whose secret has signed it. */
    source: text(),
    body: text().notNull(),
    status: text().$type<'received' | 'processed' | 'ignored' | 'parked' | 'failed'>().notNull(),
    /** When it happened, by the provider's clock (ms). */
    occurredAt: integer('occurred_at').notNull(),
    attempts: integer().notNull(),
    /** When (ms) it is tried again. */
    nextAt: integer('next_at'),
    /** The subscription that it is about, ours, once that is known. */
    subscriptionId: text('subscription_id'),
    /** Whom it waits for: how the provider calls the subscription. */
    externalSubscriptionId: text('external_subscription_id'),
    /** Why it was parked, failed or ignored: a sentence. */
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
