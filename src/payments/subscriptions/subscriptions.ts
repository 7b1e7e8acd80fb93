import { and, eq, inArray, isNotNull, isNull } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import { badRequest, notFound, Problem } from '../../core/problem'
import { parseFlag } from '../../core/shapes'
import { applyPage, type ListQuery, parsePage, toListPage } from '../../storage/pagination'
import type { Db } from '../../storage/port'
import { findConnectedKind, requirePositiveAmount } from '../amounts'
import {
  assertEntityExists,
  callerEntity,
  callerEntityFilter,
  entityFromInput,
  requireBuyer,
  requireOwn,
  subscriptionsOfEntity,
} from '../billable-entity'
import { countCouponAttempt, requireRedeemableByCode } from '../coupons/validation'
import { filterByParameter } from '../list-filter'
import { toAdminPlan } from '../plans'
import type { NewSubscription } from '../shapes'
import { plans, type Subscription, subscriptions } from '../tables'
import { carryOut } from './effect-executor'
import { statusEventOf } from './follow-ups'
import { getActivePlan, insertPending, newSubscription, withCoupon } from './new-subscription'
import { toSubscription } from './serializer'
import { ACTIVE_STATUSES, isOver, SHOWN_STATUSES, type Status, shownStatus, storedStatuses } from './transitions'

const { _id, status, planId, billableEntityType, billableEntityId, currentPeriodEnd, created, updated } = subscriptions
const sortable = { _id, status, planId, billableEntityType, billableEntityId, currentPeriodEnd, created, updated }

type Filters = {
  billableEntityType?: string
  billableEntityId?: string
  planId?: string
  status?: string
  hasConflict?: string
}

/** Returns a page of subscriptions, newest first: all for admins, else those of the caller's entity. */
export async function list(ctx: Ctx, query: Filters & ListQuery) {
  const { db } = ctx
  const page = parsePage(query, sortable)
  const where = listConditions({ ...query, ...callerEntityFilter(ctx) })
  const rows = await applyPage(page, db.select().from(subscriptions).where(where))
  return toListPage(page, rows.map(toSubscription), () => db.$count(subscriptions, where))
}

/** Returns a page of the subscriptions of workspaces, with their plans. */
export async function listOfWorkspaces({ db }: Ctx, query: Filters & ListQuery) {
  const page = parsePage(query, sortable)
  const where = listConditions({ ...query, billableEntityType: 'workspace' })
  const rows = await applyPage(
    page,
    db
      .select({ subscription: subscriptions, plan: plans })
      .from(subscriptions)
      .leftJoin(plans, eq(plans._id, planId))
      .where(where),
  )
  const items = rows.map(({ subscription, plan }) => ({
    ...toSubscription(subscription),
    planId: plan && toAdminPlan(plan),
  }))
  return toListPage(page, items, () => db.$count(subscriptions, where))
}

/** @throws 400 for an unknown status or entity type */
function listConditions(query: Filters) {
  const hasConflict = parseFlag(query, 'hasConflict')
  return and(
    hasConflict === undefined ? undefined : (hasConflict ? isNotNull : isNull)(subscriptions.conflict),
    filterByParameter(billableEntityType, query, 'billableEntityType', ['user', 'workspace']),
    filterByParameter(billableEntityId, query, 'billableEntityId'),
    filterByParameter(planId, query, 'planId'),
    filterByParameter(status, query, 'status', SHOWN_STATUSES, storedStatuses),
  )
}

/** Returns the active or trialing subscription of the caller's entity with the limits of its plan, or null. */
export async function getCurrent(ctx: Ctx) {
  const current = await ctx.db
    .select({ subscription: subscriptions, limits: plans.limits })
    .from(subscriptions)
    .leftJoin(plans, eq(plans._id, planId))
    .where(and(subscriptionsOfEntity(callerEntity(ctx)), inArray(status, ACTIVE_STATUSES)))
    .get()
  return current ? { ...toSubscription(current.subscription), limits: current.limits ?? {} } : null
}

/** Returns a subscription. @throws 404 SUBSCRIPTION_NOT_FOUND, 403 when it belongs to another entity */
export const get = async (ctx: Ctx, id: string) => toSubscription(requireOwn(ctx, await getSubscription(ctx.db, id)))

/** Returns the row of a subscription. @throws 404 SUBSCRIPTION_NOT_FOUND */
export const getSubscription = async (db: Pick<Db, 'select'>, id: string): Promise<Subscription> =>
  (await findSubscription(db, id)) ?? notFound('subscription')

/** Returns the row of a subscription, if there is one. */
export const findSubscription = async (db: Pick<Db, 'select'>, id: string): Promise<Subscription | undefined> =>
  db.select().from(subscriptions).where(eq(_id, id)).get()

/**
 * Creates a pending subscription. Admins name its entity, and may set the price for a dynamic plan; other callers subscribe
 * for their own entity.
 * @throws 400 PLAN_NOT_ACTIVE, INVALID_AMOUNT, COUPON_…, 403, 404 PLAN_NOT_FOUND, USER_NOT_FOUND, WORKSPACE_NOT_FOUND
 */
export async function create(ctx: Ctx, input: NewSubscription) {
  if (input.couponCode) countCouponAttempt(ctx)
  const givenEntity = entityFromInput(ctx, input)
  if (ctx.actor.privileged && !givenEntity)
    badRequest({ path: '/billableEntityType', message: 'billableEntityType and billableEntityId are required.' })
  const entity = givenEntity ?? callerEntity(ctx)
  await requireBuyer(ctx, entity)
  const kind = await findConnectedKind(ctx)
  return ctx.write(async (tx) => {
    const plan = await getActivePlan(tx, input.planId)
    await assertEntityExists(tx, entity)
    const { dynamicAmount } = ctx.actor.privileged && plan.dynamic ? input : {}
    const hasNoAmount = dynamicAmount === undefined || dynamicAmount === null
    const amount = hasNoAmount ? null : requirePositiveAmount(dynamicAmount, plan.currency, kind)
    const fresh = newSubscription(plan, input.billingCycle, entity, amount)
    const { couponCode } = input
    const row = couponCode ? withCoupon(fresh, await requireRedeemableByCode(tx, couponCode, fresh)) : fresh
    await insertPending(tx, ctx, row)
    await carryOut(tx, ctx, statusEventOf(undefined, row, ctx.actor.user))
    return toSubscription(row)
  })
}

/** @throws 409 SUBSCRIPTION_ENDED */
export function assertNotEnded(row: { status: Status }) {
  if (!isOver(row)) return
  throw new Problem(
    409,
    'SUBSCRIPTION_ENDED',
    `A subscription that is ${shownStatus(row)} cannot be changed. Create a new one.`,
  )
}
