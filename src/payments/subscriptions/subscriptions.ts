import { and, eq, inArray, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Ctx } from '../../accounts/guard'
import type { Answer } from '../../core/etag'
import { invalid, missing, Problem } from '../../core/problem'
import { answerPage, type Listing, namesOf, paged, pageOf } from '../../storage/lists'
import type { Db } from '../../storage/port'
import { ofEntity, ownEntity, ownOnly, refuseForeign, refuseNobody, requireBuyer, saidEntity } from '../billable'
import { countCouponAttempt, coupon } from '../coupons/validation'
import { shownToAdmins } from '../plans'
import type { NewSubscription } from '../shapes'
import { plans, type Subscription, subscriptions } from '../tables'
import { add, newSubscription, planFor, positive, withCoupon } from './making'
import { IN_FORCE, moves, type Status } from './moves'
import { shown } from './shown'
import { tell } from './telling'

const { _id, status, planId, billableEntityType, billableEntityId, currentPeriodEnd, created, updated } = subscriptions
const sortable = { _id, status, planId, billableEntityType, billableEntityId, currentPeriodEnd, created, updated }

type Filters = { billableEntityType?: string; billableEntityId?: string; planId?: string; status?: string }

/** A page of subscriptions, newest first: all for admins, else those of the caller's entity. */
export async function list(ctx: Ctx, query: Filters & Listing, answer: Answer) {
  const { db } = ctx
  const page = pageOf(query, sortable)
  const where = conditionOf({ ...query, planId: undefined, ...ownOnly(ctx) })
  const rows = await paged(page, db.select().from(subscriptions).where(where))
  return answerPage(answer, page, rows.map(shown), () => db.$count(subscriptions, where))
}

/** A page of those of workspaces, with their plans. */
export async function listOfWorkspaces({ db }: Ctx, query: Filters & Listing, answer: Answer) {
  const page = pageOf(query, sortable)
  const where = conditionOf({ ...query, billableEntityType: 'workspace' })
  const rows = await paged(
    page,
    db
      .select({ subscription: subscriptions, plan: plans })
      .from(subscriptions)
      .leftJoin(plans, eq(plans._id, planId))
      .where(where),
  )
  const told = rows.map(({ subscription, plan }) => ({ ...shown(subscription), planId: plan && shownToAdmins(plan) }))
  return answerPage(answer, page, told, () => db.$count(subscriptions, where))
}

/** @throws 400 for a status or a type that there is not */
function conditionOf(query: Filters): SQL | undefined {
  const anyOf = (column: SQLiteColumn, path: keyof Filters, known?: string[]) => {
    const values = namesOf(query[path], path)
    const unknown = known && values?.find((value) => !known.includes(value))
    if (unknown) invalid({ path, message: `There is no ${path} "${unknown}", but ${known.join(', ')}.` })
    return values && inArray(column, values)
  }
  return and(
    anyOf(billableEntityType, 'billableEntityType', ['user', 'workspace']),
    anyOf(billableEntityId, 'billableEntityId'),
    anyOf(planId, 'planId'),
    anyOf(status, 'status', Object.keys(moves)),
  )
}

/** What the caller's entity has in force, with what its plan allows; null where that is nothing. */
export async function mine(ctx: Ctx) {
  const found = await ctx.db
    .select({ subscription: subscriptions, limits: plans.limits })
    .from(subscriptions)
    .leftJoin(plans, eq(plans._id, planId))
    .where(and(ofEntity(ownEntity(ctx)), inArray(status, IN_FORCE)))
    .get()
  return found ? { ...shown(found.subscription), limits: found.limits ?? {} } : null
}

/** One subscription. @throws 404 SUBSCRIPTION_NOT_FOUND, 403 for somebody else's */
export const get = async (ctx: Ctx, id: string) => shown(refuseForeign(ctx, await found(ctx.db, id)))

/** @throws 404 SUBSCRIPTION_NOT_FOUND */
export const found = async (db: Pick<Db, 'select'>, id: string): Promise<Subscription> =>
  (!id.includes('\0') && (await db.select().from(subscriptions).where(eq(_id, id)).get())) || missing('subscription')

/**
 * A subscription that waits for its checkout. For whom it is, and at which price, admins say; others get what is theirs.
 * @throws 400 PLAN_NOT_ACTIVE, INVALID_AMOUNT, COUPON_…, 403, 404 PLAN_NOT_FOUND, USER_NOT_FOUND, WORKSPACE_NOT_FOUND
 */
export async function create(ctx: Ctx, input: NewSubscription) {
  if (input.couponCode) countCouponAttempt(ctx)
  const said = saidEntity(ctx, input)
  if (ctx.actor.privileged && !said)
    invalid({ path: '/billableEntityType', message: 'Say for whom it is: billableEntityType and billableEntityId.' })
  const entity = said ?? ownEntity(ctx)
  await requireBuyer(ctx, entity)
  return ctx.write(async (tx) => {
    const plan = await planFor(tx, input.planId)
    await refuseNobody(tx, entity)
    const { dynamicAmount } = ctx.actor.privileged && plan.dynamic ? input : {}
    const none = dynamicAmount === undefined || dynamicAmount === null
    const amount = none ? null : positive(dynamicAmount, plan.currency)
    const fresh = newSubscription(plan, input.billingCycle, entity, amount)
    const { couponCode } = input
    const row = couponCode ? withCoupon(fresh, await coupon(tx, couponCode, fresh)) : fresh
    await add(tx, ctx, row)
    await tell(ctx, tx, undefined, row, ctx.actor.user)
    return shown(row)
  })
}

/** @throws 409 SUBSCRIPTION_ENDED */
export function refuseEnded({ status }: { status: Status }) {
  if (status === 'canceled' || status === 'expired')
    throw new Problem(
      409,
      'SUBSCRIPTION_ENDED',
      `This subscription is ${status}, which can't be changed. Begin another.`,
    )
}
