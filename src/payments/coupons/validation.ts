import { and, eq } from 'drizzle-orm'
import type { OpenCtx } from '../../accounts/guard'
import { config } from '../../config'
import { now } from '../../core/clock'
import { Limiter } from '../../core/limiter'
import { Problem, tooMany } from '../../core/problem'
import type { Db } from '../../storage/port'
import { networkOf } from '../../tenancy/caller'
import { callerOf } from '../billable'
import { type Coupon, coupons, type Plan, plans, redemptions } from '../tables'
import { byCode, shown } from './coupons'

const MOST = 60 // of one caller
const WINDOW = 60_000 // ms

const limiter = new Limiter(MOST, WINDOW)

/**
 * What a code is good for. Whoever is no admin may try some in a minute, and is not told how many have redeemed it.
 * @throws 400 as `redeemable` does, 429
 */
export async function validate(ctx: OpenCtx, { code, planId }: { code: string; planId?: string }, request: Request) {
  const { tenant, db } = ctx
  const actor = await callerOf(request)
  if (!actor?.privileged && config.ATOLL_RATE_LIMITS !== 'off') {
    const wait = limiter.take(`${tenant} ${actor ? `user ${actor.user}` : networkOf(request)}`)
    if (wait) tooMany(wait / 1000, 'Too many coupons were tried.')
  }
  const plan = planId ? await db.select().from(plans).where(eq(plans._id, planId)).get() : undefined
  const target = planId ? (plan ?? { _id: planId }) : undefined
  const { maxRedemptions, currentRedemptions, ...told } = shown(redeemable(await byCode(db, code), target))
  return actor?.privileged ? { ...told, maxRedemptions, currentRedemptions } : told
}

/** A coupon by its code, if it can be redeemed for a plan now. @throws as `redeemable` does */
export async function coupon(db: Pick<Db, 'select'>, code: string, plan: Plan, subscription?: string, status = 400) {
  const found = await byCode(db, code)
  return redeemable(found, plan, status, !!found && !!subscription && (await isRedeemed(db, found, subscription)))
}

/** The same of one that was attached before. */
export async function attached(db: Pick<Db, 'select'>, id: string, plan: Plan, subscription: string) {
  const found = await db.select().from(coupons).where(eq(coupons._id, id)).get()
  return redeemable(found, plan, 400, !!found && (await isRedeemed(db, found, subscription)))
}

const isRedeemed = async (db: Pick<Db, 'select'>, { _id }: Coupon, subscription: string) =>
  !!(await db
    .select()
    .from(redemptions)
    .where(and(eq(redemptions.subscription, subscription), eq(redemptions.coupon, _id)))
    .get())

/**
 * The coupon, if it can be redeemed now: looked at in the order of the contract. A fixed discount applies in its currency
 * alone. Who has redeemed it already takes no other redemption.
 * @throws 400 COUPON_NOT_FOUND (or `status`), COUPON_NOT_YET_VALID, _EXPIRED, _MAX_REDEMPTIONS, _NOT_APPLICABLE
 */
export function redeemable(
  coupon: Coupon | undefined,
  plan: (Pick<Plan, '_id'> & Partial<Pick<Plan, 'currency'>>) | undefined,
  status = 400,
  redeemed = false,
): Coupon {
  const refuse = (code: string, message: string, status = 400): never => {
    throw new Problem(status, code, message)
  }
  if (!coupon?.isActive) return refuse('COUPON_NOT_FOUND', 'There is no such coupon.', status)
  const { validFrom, validUntil, maxRedemptions, currentRedemptions, applicablePlanIds, currency } = coupon
  const time = now()
  if (validFrom && Date.parse(validFrom) > time)
    refuse('COUPON_NOT_YET_VALID', `This coupon can be redeemed from ${validFrom} on.`)
  if (validUntil && Date.parse(validUntil) <= time)
    refuse('COUPON_EXPIRED', `This coupon could be redeemed until ${validUntil}.`)
  if (maxRedemptions !== null && currentRedemptions >= maxRedemptions && !redeemed) refuse(...NONE_LEFT)
  if (plan && applicablePlanIds.length && !applicablePlanIds.includes(plan._id))
    refuse('COUPON_NOT_APPLICABLE', 'This coupon is not good for this plan.')
  if (currency && plan?.currency && currency !== plan.currency)
    refuse('COUPON_NOT_APPLICABLE', `This coupon is good for prices in ${currency} only.`)
  return coupon
}

const NONE_LEFT = ['COUPON_MAX_REDEMPTIONS', 'This coupon was redeemed as often as it can be.'] as const

/** @throws 400 COUPON_MAX_REDEMPTIONS */
export const noneLeft = (): never => {
  throw new Problem(400, ...NONE_LEFT)
}
