import { type Static, t } from 'elysia'
import { email, orEmpty } from '../accounts/shapes'
import { listParameter } from '../core/query-lists'
import { id, jsonObject, line, partialOf, strictObject, text, time, withKeyPolicy } from '../core/shapes'
import { growingListQuery, listQuery } from '../storage/pagination'
import type { ProviderKind } from './tables'

const maybe = t.Optional
const money = t.Number({ description: 'amount in the currency, with decimals' })
const price = t.Nullable(t.Number({ minimum: 0, description: 'amount in the currency, with decimals' }))
const externalIdShape = maybe(t.String({ minLength: 1, maxLength: 200 }))
export const BillingCycle = t.Union([t.Literal('monthly'), t.Literal('yearly')])
export const BillableEntityType = t.Union([t.Literal('user'), t.Literal('workspace')])
const filterField = (description: string) => maybe(t.String({ description }))

export const ExternalIds = strictObject({
  productId: externalIdShape,
  monthlyPriceId: externalIdShape,
  yearlyPriceId: externalIdShape,
  monthlyPlanId: externalIdShape,
  yearlyPlanId: externalIdShape,
})
const byProvider = {
  stripe: maybe(ExternalIds),
  paypal: maybe(ExternalIds),
  paddle: maybe(ExternalIds),
} satisfies Record<ProviderKind, unknown>

export const ProviderIds = strictObject(byProvider, { description: 'ids of the plan and its prices at providers' })

export const NewPlan = t.Object(
  {
    name: maybe(line(200, 1)),
    description: maybe(text(10_000)),
    monthlyPrice: maybe(price),
    yearlyPrice: maybe(price),
    currency: maybe(
      t.String({ maxLength: 10, description: 'ISO 4217; default: defaultCurrency of the configuration' }),
    ),
    dynamic: maybe(t.Boolean({ description: 'whether an admin sets the price per subscription' })),
    isActive: maybe(t.Boolean({ description: 'default: true' })),
    features: maybe(t.Array(line(500), { maxItems: 200 })),
    sortOrder: maybe(t.Number({ multipleOf: 1, minimum: -1_000_000, maximum: 1_000_000 })),
    limits: maybe({ ...jsonObject, description: 'numbers by name, referenced by limitations of blueprints' }),
    metadata: maybe(jsonObject),
    externalIds: maybe(ProviderIds),
  },
  {
    ...withKeyPolicy({
      unsupported: [
        ...['trialDays', 'trialPeriodDays', 'trial', 'trialRequiresPaymentMethod'],
        ...['family', 'seats', 'quantity', 'meters'],
      ],
    }),
    'x-schema': {
      required: ['name'],
      anyOf: [
        { 'x-name': 'with prices', required: ['monthlyPrice', 'yearlyPrice'] },
        { 'x-name': 'with dynamic price', required: ['dynamic'] },
      ],
    },
  },
)
export type NewPlan = Static<typeof NewPlan>
export const PlanChange = partialOf(NewPlan)

export const Plan = t.Object({
  _id: id,
  name: t.String(),
  description: t.String(),
  monthlyPrice: t.Nullable(money),
  yearlyPrice: t.Nullable(money),
  currency: t.String(),
  dynamic: t.Boolean(),
  isActive: t.Boolean(),
  features: t.Array(t.String()),
  sortOrder: t.Number(),
  limits: jsonObject,
  metadata: jsonObject,
  externalIds: maybe({ ...jsonObject, description: 'for admins only' }),
  created: time,
  updated: time,
})
export type Plan = Static<typeof Plan>

export const PlanList = t.Object({ ...listQuery, isActive: maybe(t.String({ 'x-schema': { type: 'boolean' } })) })

export const BenefitDurationUnit = t.Union([t.Literal('days'), t.Literal('months')])

const couponFields = {
  discountType: t.Union([t.Literal('percentage'), t.Literal('fixed')]),
  discountValue: t.Number({ minimum: 0, description: 'per cent, 0 to 100, or an amount of the currency' }),
  currency: t.Nullable(t.String({ description: 'of a fixed discount; default: defaultCurrency of the configuration' })),
  maxRedemptions: t.Nullable(t.Number({ minimum: 0, multipleOf: 1, maximum: 1_000_000_000 })),
  validFrom: t.Nullable(time),
  validUntil: t.Nullable(time),
  benefitDurationUnit: t.Nullable(BenefitDurationUnit),
  benefitDurationValue: t.Nullable(t.Number({ minimum: 1, multipleOf: 1, maximum: 10_000 })),
  applicablePlanIds: t.Array(id, { maxItems: 1_000, description: 'empty: all plans' }),
  isActive: t.Boolean(),
}

/** A complete coupon. Input is validated after it was merged with the existing coupon or the defaults. */
export const CouponData = t.Object({ code: line(100, 1), ...couponFields })
export type CouponData = Static<typeof CouponData>

export const CouponChange = partialOf(CouponData)
const { code, discountType, discountValue } = CouponData.properties
export const NewCoupon = t.Object({ ...CouponChange.properties, code, discountType, discountValue })

export const Coupon = t.Object({
  _id: id,
  code: t.String(),
  ...couponFields,
  maxRedemptions: maybe(couponFields.maxRedemptions),
  currentRedemptions: maybe(t.Number()),
  created: time,
  updated: time,
})
export type Coupon = Static<typeof Coupon>

export const CouponList = t.Object({ ...listQuery, isActive: maybe(t.String({ 'x-schema': { type: 'boolean' } })) })
export const CouponCode = t.Object({
  code: t.String({ minLength: 1, maxLength: 200 }),
  planId: maybe(t.Nullable(t.String())),
})

const status = t.Union([
  t.Literal('pending'),
  t.Literal('active'),
  t.Literal('trialing'),
  t.Literal('past_due'),
  t.Literal('canceled'),
  t.Literal('expired'),
])
const nullableTime = t.Nullable(time)

export const Subscription = t.Object({
  _id: id,
  planId: id,
  billableEntityType: BillableEntityType,
  billableEntityId: id,
  status,
  billingCycle: BillingCycle,
  currency: t.String(),
  basePrice: t.Nullable(money),
  finalPrice: t.Nullable(money),
  dynamicAmount: t.Nullable(money),
  couponId: t.Nullable(t.String()),
  couponCode: t.Nullable(t.String()),
  couponBenefitEndsAt: nullableTime,
  currentPeriodStart: nullableTime,
  currentPeriodEnd: nullableTime,
  trialEndsAt: nullableTime,
  cancelAtPeriodEnd: t.Boolean(),
  cancelRequested: t.Nullable(time),
  pause: t.Nullable(
    t.Object({
      since: time,
      resumes: t.Nullable(time),
      reason: t.String({ description: 'such as pause_requested or trial_end_without_payment_method' }),
    }),
    { description: 'the pause at the provider; a paused subscription is `expired` until it is resumed' },
  ),
  conflict: maybe(
    t.Object(
      { subscriptionId: id, since: time },
      { description: 'the other subscription in force, while this one is paid as well; an admin cancels one of them' },
    ),
  ),
  providerKind: t.Nullable(t.String()),
  providerSourceId: t.Nullable(t.String()),
  externalSubscriptionId: t.Nullable(t.String()),
  metadata: jsonObject,
  created: time,
  updated: time,
})
export type Subscription = Static<typeof Subscription>

export const LimitedSubscription = t.Composite([Subscription, t.Object({ limits: jsonObject })])
export const OwnSubscription = t.Nullable(LimitedSubscription)
export const WorkspaceSubscription = t.Composite([
  t.Omit(Subscription, ['planId']),
  t.Object({ planId: t.Nullable(Plan) }),
])

export const SubscriptionList = t.Object({
  ...listQuery,
  billableEntityType: filterField('user or workspace; for admins'),
  billableEntityId: filterField('for admins'),
  planId: listParameter('several values'),
  status: listParameter('several values'),
  hasConflict: maybe(t.String({ description: 'those that wait for an admin', 'x-schema': { type: 'boolean' } })),
})
export const WorkspaceSubscriptionList = t.Object({
  ...listQuery,
  billableEntityId: listParameter('several values'),
  planId: listParameter('several values'),
  status: listParameter('several values'),
})

// These fields are ignored, whatever their type, when the caller is not an admin.
const adminOnlyField = (description: string, schema: object) =>
  maybe(t.Unknown({ description: `${description}; admins only`, 'x-schema': schema }))
const entityTypeSchema = { anyOf: [{ type: 'string', enum: ['user', 'workspace'] }, { type: 'null' }] }
const amountSchema = { type: ['number', 'null'], exclusiveMinimum: 0 }

export const NewSubscription = t.Object(
  {
    planId: id,
    billingCycle: BillingCycle,
    couponCode: maybe(t.Nullable(t.String({ maxLength: 200 }))),
    billableEntityType: adminOnlyField('type of the billable entity', entityTypeSchema),
    billableEntityId: adminOnlyField('the id of the user or the workspace', { type: ['string', 'null'] }),
    dynamicAmount: adminOnlyField('price per cycle, for dynamic plans', amountSchema),
  },
  withKeyPolicy({ unsupported: ['quantity', 'trialDays'] }),
)
export type NewSubscription = Static<typeof NewSubscription>

export const PricePreviewRequest = t.Object({
  billingCycle: BillingCycle,
  couponCode: maybe(t.Nullable(t.String({ maxLength: 200 }))),
  amount: maybe(t.Nullable(t.Number({ description: 'price per cycle, for dynamic plans' }))),
  start: maybe(t.String({ description: 'when the subscription begins, ISO 8601; default: now' })),
  payments: maybe(t.Number({ multipleOf: 1, minimum: 1, maximum: 60, description: 'how many payments; default: 12' })),
})
export type PricePreviewRequest = Static<typeof PricePreviewRequest>

export const PricePreview = t.Object({
  currency: t.String(),
  billingCycle: BillingCycle,
  basePrice: t.Nullable(money),
  couponBenefitEndsAt: nullableTime,
  isFree: t.Boolean({ description: 'whether it runs without a provider, so that nothing is ever charged' }),
  total: money,
  payments: t.Array(
    t.Object({
      date: time,
      periodEnd: time,
      amount: money,
      reason: t.Union([t.Literal('price'), t.Literal('coupon'), t.Literal('free')]),
    }),
  ),
})
export type PricePreview = Static<typeof PricePreview>

export const DynamicAmount = t.Object(
  { amount: maybe(t.Unknown({ 'x-schema': { type: 'number', exclusiveMinimum: 0 } })) },
  { 'x-schema': { required: ['amount'] } },
)
/** A cancellation takes effect at once. */
export const Cancellation = t.Object({
  atPeriodEnd: maybe(t.Nullable(t.Boolean({ description: 'must be false: it is cancelled at once' }))),
})
export type Cancellation = Static<typeof Cancellation>

export const CouponAttachment = t.Object({ couponCode: t.Nullable(t.String({ maxLength: 200 })) })

const redirectUrlShape = maybe(t.Nullable(t.String({ maxLength: 2_000 })))

/** Whom the provider names on its invoices. */
export const Customer = strictObject({ name: maybe(t.Nullable(line(300))), email: maybe(orEmpty(email)) })

export const NewCheckout = t.Object(
  {
    subscriptionId: maybe(t.Nullable(t.String({ description: 'a pending subscription' }))),
    planId: maybe(t.Nullable(t.String({ description: 'or a plan with a price' }))),
    billingCycle: maybe(t.Nullable(BillingCycle)),
    couponCode: maybe(t.Nullable(t.String({ maxLength: 200 }))),
    successUrl: redirectUrlShape,
    cancelUrl: redirectUrlShape,
    billableEntityType: adminOnlyField('type of the billable entity', entityTypeSchema),
    billableEntityId: adminOnlyField('the id of the user or the workspace', { type: ['string', 'null'] }),
    amount: adminOnlyField('price per cycle, for dynamic plans', amountSchema),
    customer: maybe(Customer),
    reset: maybe(t.Boolean({ description: 'cancels the existing subscription of the entity first' })),
  },
  {
    ...withKeyPolicy({ unsupported: ['productId', 'quantity', 'trialDays'] }),
    'x-schema': {
      anyOf: [
        { 'x-name': 'of subscription', required: ['subscriptionId'] },
        { 'x-name': 'of plan', required: ['planId', 'billingCycle'] },
      ],
    },
  },
)
export type NewCheckout = Static<typeof NewCheckout>

export const Checkout = t.Object({
  subscriptionId: id,
  checkoutUrl: t.Nullable(t.String()),
  clientToken: t.Nullable(t.String()),
})
export type Checkout = Static<typeof Checkout>

export const Invoice = t.Object({
  _id: id,
  subscriptionId: id,
  billableEntityType: BillableEntityType,
  billableEntityId: id,
  amount: money,
  currency: t.String(),
  status: t.Union([t.Literal('paid'), t.Literal('open'), t.Literal('void')]),
  externalInvoiceId: t.String(),
  providerKind: t.String(),
  invoiceUrl: t.Nullable(t.String()),
  paidAt: nullableTime,
  periodStart: nullableTime,
  periodEnd: nullableTime,
  items: t.Array(t.Object({ description: t.String(), quantity: t.Number(), amount: money })),
  created: time,
  updated: time,
})
export type Invoice = Static<typeof Invoice>

export const InvoiceList = t.Object({
  ...growingListQuery,
  billableEntityType: filterField('user or workspace; for admins'),
  billableEntityId: filterField('for admins'),
  subscriptionId: listParameter('several values'),
  status: listParameter('paid, open or void'),
})
