import { and, eq } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { Problem } from '../../core/problem'
import type { Db, Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { Billable } from '../billable-entity'
import type { Cycle } from '../billing-period'
import { toMinorUnits } from '../money'
import { getPlan } from '../plans'
import { type Coupon, type Plan, type Subscription, subscriptions } from '../tables'
import { scheduleLifecycle } from './schedule'

const MAX_PENDING_SUBSCRIPTIONS = 100 // that wait, of one entity

/** A plan to which one can subscribe. @throws 404 PLAN_NOT_FOUND, 400 PLAN_NOT_ACTIVE */
export async function getActivePlan(db: Pick<Db, 'select'>, id: string): Promise<Plan> {
  const plan = await getPlan(db, id)
  if (plan.isActive) return plan
  throw new Problem(400, 'PLAN_NOT_ACTIVE', 'This plan is archived. Choose another.')
}

/** An amount in minor units. @throws 400 INVALID_AMOUNT for what is no positive number, or not one after rounding */
export function requirePositiveAmount(amount: unknown, currency: string): number {
  const minor = toMinorUnits(amount, currency)
  if (minor && minor > 0) return minor
  throw new Problem(400, 'INVALID_AMOUNT', `The amount must be positive and at least the smallest unit of ${currency}.`)
}

/** A subscription that waits for its checkout. Of a dynamic plan, `amount` is what an admin has said, if they have. */
export function newSubscription(
  plan: Plan,
  billingCycle: Cycle,
  entity: Billable,
  amount: number | null,
): Subscription {
  const time = toIsoString(now())
  const price = billingCycle === 'yearly' ? plan.yearlyPrice : plan.monthlyPrice
  return {
    ...{ _id: Bun.randomUUIDv7(), planId: plan._id, ...entity, status: 'pending', billingCycle },
    ...{ currency: plan.currency, basePrice: plan.dynamic ? amount : price },
    ...{ dynamicAmount: plan.dynamic ? amount : null },
    ...{ couponId: null, couponCode: null, discount: null, couponBenefitEndsAt: null },
    ...{ currentPeriodStart: null, currentPeriodEnd: null, trialEndsAt: null, pastDueSince: null },
    ...{ cancelAtPeriodEnd: false, cancelRequested: null, providerKind: null, providerSourceId: null },
    ...{ externalSubscriptionId: null, externalCheckoutId: null, lastEventAt: null },
    ...{ checkoutUntil: null, checkoutAmount: null, failedCheckouts: 0 },
    ...{ metadata: {}, created: time, updated: time, drift: null },
  }
}

/** The same with a coupon attached, as it is now. */
export const withCoupon = (subscription: Subscription, { _id, code, discount, benefit }: Coupon): Subscription => ({
  ...subscription,
  ...{ couponId: _id, couponCode: code, discount: { ...discount, benefit }, couponBenefitEndsAt: null },
})

/** Adds one that waits. @throws 409 TOO_MANY_SUBSCRIPTIONS, where so many of its entity wait already */
export async function insertPending(tx: Tx, ctx: Pick<Tenant, 'tenant'>, row: Subscription) {
  const { billableEntityType: type, billableEntityId: id } = row
  const of = and(eq(subscriptions.billableEntityType, type), eq(subscriptions.billableEntityId, id))
  if ((await tx.$count(subscriptions, and(of, eq(subscriptions.status, 'pending')))) >= MAX_PENDING_SUBSCRIPTIONS)
    throw new Problem(
      409,
      'TOO_MANY_SUBSCRIPTIONS',
      `Limit reached: ${MAX_PENDING_SUBSCRIPTIONS} pending subscriptions. Check out or cancel one first.`,
    )
  await tx.insert(subscriptions).values(row)
  await scheduleLifecycle(tx, ctx, row)
}
