import { and, eq } from 'drizzle-orm'
import type { PublicCtx } from '../../accounts/context'
import { config } from '../../config'
import { now } from '../../core/clock'
import { Problem, tooManyRequests } from '../../core/problem'
import { RateLimiter } from '../../core/rate-limiter'
import type { Db } from '../../storage/port'
import { clientNetwork } from '../../tenancy/client-connection'
import { type Coupon, coupons, type Plan, plans, redemptions, type Subscription } from '../tables'
import { findByCode, toCoupon } from './coupons'

const MAX_COUPON_ATTEMPTS = 60 // per caller and window
const COUPON_ATTEMPT_WINDOW_MS = 60_000

const attemptLimiter = new RateLimiter(MAX_COUPON_ATTEMPTS, COUPON_ATTEMPT_WINDOW_MS)

/**
 * Returns the coupon of a code, if it can be redeemed. Other callers than admins may try a limited number of codes per
 * minute, and do not see the number of redemptions.
 * @throws what `requireRedeemable` throws, 429 RATE_LIMITED
 */
export async function validateCode(
  ctx: PublicCtx,
  { code, planId }: { code: string; planId?: string | null },
  request: Request,
) {
  const { db, actor } = ctx
  countCouponAttempt(ctx, request)
  const plan = planId ? await db.select().from(plans).where(eq(plans._id, planId)).get() : undefined
  const target = planId ? (plan ?? { _id: planId }) : undefined
  const { maxRedemptions, currentRedemptions, ...publicFields } = toCoupon(
    requireRedeemable(await findByCode(db, code), target),
  )
  return actor?.privileged ? { ...publicFields, maxRedemptions, currentRedemptions } : publicFields
}

/** Counts an attempt to use a code. Admins are not limited, because they may list all codes. @throws 429 RATE_LIMITED */
export function countCouponAttempt({ tenant, actor }: PublicCtx, request?: Request) {
  if (actor?.privileged || config.ATOLL_RATE_LIMITS === 'off') return
  const caller = actor ? `user ${actor.user}` : request ? clientNetwork(request) : ''
  const wait = attemptLimiter.consume(`${tenant} ${caller}`)
  if (wait) tooManyRequests(wait / 1000, 'Too many coupon codes were tried.')
}

type RedeemingSubscription = Pick<Subscription, '_id' | 'planId' | 'currency'>

/** Returns a coupon by its code, if it can be redeemed for a subscription `at` a time (ms). @throws what `requireRedeemable` throws */
export const requireRedeemableByCode = async (
  db: Pick<Db, 'select'>,
  code: string,
  subscription: RedeemingSubscription,
  status = 400,
  at = now(),
) => requireRedeemableFor(db, await findByCode(db, code), subscription, status, at)

/** Returns an attached coupon by its id, if it can be redeemed now. @throws what `requireRedeemable` throws */
export const requireRedeemableById = async (db: Pick<Db, 'select'>, id: string, subscription: RedeemingSubscription) =>
  requireRedeemableFor(db, await db.select().from(coupons).where(eq(coupons._id, id)).get(), subscription)

/** Prices are in the currency that the plan had when the subscription was created. */
async function requireRedeemableFor(
  db: Pick<Db, 'select'>,
  row: Coupon | undefined,
  { _id, planId, currency }: RedeemingSubscription,
  status?: number,
  at?: number,
) {
  const isSameRedemption = row && and(eq(redemptions.subscription, _id), eq(redemptions.coupon, row._id))
  const isRedeemed = !!isSameRedemption && !!(await db.select().from(redemptions).where(isSameRedemption).get())
  return requireRedeemable(row, { _id: planId, currency }, status, isRedeemed, at)
}

/**
 * Returns the coupon, if it can be redeemed `at` a time (ms). The checks have a documented order. A fixed discount applies only in its
 * currency. If it `isRedeemed` already, it needs no further redemption.
 * @throws 400 COUPON_NOT_FOUND (or `status`), COUPON_NOT_YET_VALID, _EXPIRED, _MAX_REDEMPTIONS, _NOT_APPLICABLE
 */
export function requireRedeemable(
  coupon: Coupon | undefined,
  plan: (Pick<Plan, '_id'> & Partial<Pick<Plan, 'currency'>>) | undefined,
  status = 400,
  isRedeemed = false,
  at = now(),
): Coupon {
  const reject = (code: string, message: string, status = 400): never => {
    throw new Problem(status, code, message)
  }
  if (!coupon?.isActive) return reject('COUPON_NOT_FOUND', 'Coupon not found.', status)
  const { validFrom, validUntil, maxRedemptions, currentRedemptions, applicablePlanIds, currency } = coupon
  if (validFrom && Date.parse(validFrom) > at)
    reject('COUPON_NOT_YET_VALID', `This coupon is not valid before ${validFrom}.`)
  if (validUntil && Date.parse(validUntil) <= at) reject('COUPON_EXPIRED', `This coupon expired at ${validUntil}.`)
  if (maxRedemptions !== null && currentRedemptions >= maxRedemptions && !isRedeemed) reject(...NO_REDEMPTIONS_LEFT)
  if (plan && applicablePlanIds.length && !applicablePlanIds.includes(plan._id))
    reject('COUPON_NOT_APPLICABLE', 'This coupon does not apply to this plan.')
  if (currency && plan?.currency && currency !== plan.currency)
    reject('COUPON_NOT_APPLICABLE', `This coupon applies to prices in ${currency} only.`)
  return coupon
}

const NO_REDEMPTIONS_LEFT = ['COUPON_MAX_REDEMPTIONS', 'This coupon has reached its redemption limit.'] as const

/** @throws 400 COUPON_MAX_REDEMPTIONS */
export const throwNoRedemptionsLeft = (): never => {
  throw new Problem(400, ...NO_REDEMPTIONS_LEFT)
}
