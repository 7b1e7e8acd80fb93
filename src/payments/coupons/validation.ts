import { and, eq } from 'drizzle-orm'
import type { OpenCtx } from '../../accounts/guard'
import { config } from '../../config'
import { now } from '../../core/clock'
import { Limiter } from '../../core/limiter'
import { Problem, tooMany } from '../../core/problem'
import type { Db } from '../../storage/port'
import { networkOf } from '../../tenancy/caller'
import { type Coupon, coupons, type Plan, plans, redemptions, type Subscription } from '../tables'
import { byCode, shown } from './coupons'

const MOST = 60 // of one caller
const WINDOW = 60_000 // ms

const limiter = new Limiter(MOST, WINDOW)

/**
 * What a code is good for. Whoever is no admin may try some in a minute, and is not told how many have redeemed it.
 * @throws 400 as `redeemable` does, 429
 */
export async function validate(
  ctx: OpenCtx,
  { code, planId }: { code: string; planId?: string | null },
  request: Request,
) {
  const { db, actor } = ctx
  countCouponAttempt(ctx, request)
  const plan = planId ? await db.select().from(plans).where(eq(plans._id, planId)).get() : undefined
  const target = planId ? (plan ?? { _id: planId }) : undefined
  const { maxRedemptions, currentRedemptions, ...told } = shown(redeemable(await byCode(db, code), target))
  return actor?.privileged ? { ...told, maxRedemptions, currentRedemptions } : told
}

/** Counts that a code is tried, wherever one is taken; admins may read them all. @throws 429 RATE_LIMITED */
export function countCouponAttempt({ tenant, actor }: OpenCtx, request?: Request) {
  if (actor?.privileged || config.ATOLL_RATE_LIMITS === 'off') return
  const caller = actor ? `user ${actor.user}` : request ? networkOf(request) : ''
  const wait = limiter.take(`${tenant} ${caller}`)
  if (wait) tooMany(wait / 1000, 'Too many coupons were tried.')
}

type For = Pick<Subscription, '_id' | 'planId' | 'currency'>

/** A coupon by its code, if it can be redeemed for a subscription now. @throws as `redeemable` does */
export const coupon = async (db: Pick<Db, 'select'>, code: string, subscription: For, status = 400) =>
  redeemableFor(db, await byCode(db, code), subscription, status)

/** The same of one that was attached before. */
export const attached = async (db: Pick<Db, 'select'>, id: string, subscription: For) =>
  redeemableFor(db, await db.select().from(coupons).where(eq(coupons._id, id)).get(), subscription)

/** Prices are in the currency that the plan had when the subscription was made. */
async function redeemableFor(
  db: Pick<Db, 'select'>,
  found: Coupon | undefined,
  { _id, planId, currency }: For,
  status?: number,
) {
  const known = found && and(eq(redemptions.subscription, _id), eq(redemptions.coupon, found._id))
  const isRedeemed = !!known && !!(await db.select().from(redemptions).where(known).get())
  return redeemable(found, { _id: planId, currency }, status, isRedeemed)
}

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
