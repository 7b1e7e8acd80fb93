import { and, eq } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { Problem } from '../../core/problem'
import type { Db, Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { type Billable, subscriptionsOfEntity } from '../billable-entity'
import type { Cycle } from '../billing-period'
import { getPlan } from '../plans'
import { type Coupon, type Plan, type Subscription, subscriptions } from '../tables'
import { carryOut } from './effect-executor'
import { checkOf } from './follow-ups'

const MAX_PENDING_SUBSCRIPTIONS = 100 // per entity

/** Returns a plan that accepts subscriptions. @throws 404 PLAN_NOT_FOUND, 400 PLAN_NOT_ACTIVE */
export async function getActivePlan(db: Pick<Db, 'select'>, id: string): Promise<Plan> {
  const plan = await getPlan(db, id)
  if (plan.isActive) return plan
  throw new Problem(400, 'PLAN_NOT_ACTIVE', 'This plan is archived. Choose another.')
}

/** Returns the price of a plan for a cycle, in minor units. */
export const planPriceOf = ({ monthlyPrice, yearlyPrice }: Plan, cycle: Cycle) =>
  cycle === 'yearly' ? yearlyPrice : monthlyPrice

/**
 * Returns a pending subscription, which is not inserted yet. `amount` (minor units) is the price that an admin has set for a
 * dynamic plan, if any.
 */
export function newSubscription(
  plan: Plan,
  billingCycle: Cycle,
  entity: Billable,
  amount: number | null,
): Subscription {
  const time = toIsoString(now())
  return {
    ...{ _id: Bun.randomUUIDv7(), planId: plan._id, ...entity, status: 'pending', billingCycle },
    ...{ currency: plan.currency, basePrice: plan.dynamic ? amount : planPriceOf(plan, billingCycle) },
    ...{ dynamicAmount: plan.dynamic ? amount : null },
    ...{ couponId: null, couponCode: null, discount: null, couponBenefitEndsAt: null },
    ...{ currentPeriodStart: null, currentPeriodEnd: null, trialEndsAt: null, pastDueSince: null },
    ...{ cancelAtPeriodEnd: false, cancelRequested: null, providerKind: null, providerSourceId: null },
    ...{ externalSubscriptionId: null, externalCheckoutId: null, lastEventAt: null },
    ...{ checkoutUntil: null, checkoutAmount: null, failedCheckouts: 0 },
    ...{ metadata: {}, created: time, updated: time, drift: null },
    ...{ pause: null, conflict: null, endedBy: null, periodAnchor: null },
  }
}

/** Returns the subscription with a coupon attached, with the current discount of the coupon. */
export const withCoupon = (subscription: Subscription, { _id, code, discount, benefit }: Coupon): Subscription => ({
  ...subscription,
  ...{ couponId: _id, couponCode: code, discount: { ...discount, benefit }, couponBenefitEndsAt: null },
})

/** Inserts a pending subscription. @throws 409 TOO_MANY_SUBSCRIPTIONS when its entity has too many pending ones */
export async function insertPending(tx: Tx, ctx: Pick<Tenant, 'tenant'>, row: Subscription) {
  const pendingOfEntity = and(subscriptionsOfEntity(row), eq(subscriptions.status, 'pending'))
  if ((await tx.$count(subscriptions, pendingOfEntity)) >= MAX_PENDING_SUBSCRIPTIONS)
    throw new Problem(
      409,
      'TOO_MANY_SUBSCRIPTIONS',
      `Limit reached: ${MAX_PENDING_SUBSCRIPTIONS} pending subscriptions. Check out or cancel one first.`,
    )
  await tx.insert(subscriptions).values(row)
  await carryOut(tx, ctx, [checkOf(row, now())])
}
