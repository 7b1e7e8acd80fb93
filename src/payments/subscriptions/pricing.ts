import { eq } from 'drizzle-orm'
import type { Ctx } from '../../accounts/guard'
import { iso, now } from '../../core/clock'
import { Problem } from '../../core/problem'
import { enqueue } from '../../jobs/queue'
import type { Work } from '../../jobs/work'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { sourceOf } from '../configuration'
import { keyOf } from '../coupons/coupons'
import { benefitEndOf, redeem, withoutCoupon } from '../coupons/redemption'
import { coupon, noneLeft } from '../coupons/validation'
import { found as foundPlan } from '../plans'
import { type Subscription, subscriptions } from '../tables'
import { arrange, endBenefit } from './arranging'
import { failing } from './ending'
import { REPRICE } from './kinds'
import { positive, withCoupon } from './making'
import { ENDED } from './moves'
import { priceOf, shown } from './shown'
import { found, refuseEnded } from './subscriptions'

/**
 * Says what each cycle of a dynamic plan costs, from the next one on. @throws 400 INVALID_AMOUNT, PLAN_NOT_DYNAMIC, 404,
 * 409 SUBSCRIPTION_ENDED, 502 PROVIDER_ERROR
 */
export async function setAmount(ctx: Ctx, id: string, { amount }: { amount?: unknown }) {
  const { currency } = await found(ctx.db, id)
  const minor = positive(amount, currency)
  return changed(ctx, id, async (tx, row) => {
    refuseEnded(row)
    if (!(await foundPlan(tx, row.planId)).dynamic)
      throw new Problem(400, 'PLAN_NOT_DYNAMIC', 'The price of this plan is the same for everybody. Change the plan.')
    return { ...row, dynamicAmount: minor, basePrice: minor }
  })
}

/**
 * Attaches a coupon, or takes it away: an active subscription redeems it at once, others when they become active. The same
 * code again changes nothing.
 * @throws 400 COUPON_…, 404 SUBSCRIPTION_NOT_FOUND, COUPON_NOT_FOUND, 409 SUBSCRIPTION_ENDED, 502 PROVIDER_ERROR
 */
export const setCoupon = (ctx: Ctx, id: string, { couponCode: code }: { couponCode: string | null }) =>
  changed(ctx, id, async (tx, row) => {
    if (code === null) return { ...row, ...withoutCoupon }
    refuseEnded(row)
    const attached = await coupon(tx, code, row, 404).catch((error) => {
      if (isSame(row, code)) return
      throw error
    })
    if (!attached || attached._id === row.couponId) return row
    const after = withCoupon(row, attached)
    if (row.status !== 'active') return after
    if ((await redeem(tx, ctx, { ...after, couponId: attached._id }, ctx.actor.user)) === 'none left') noneLeft()
    const redeemed = { ...after, couponBenefitEndsAt: benefitEndOf(after) }
    await endBenefit(tx, ctx, redeemed)
    return redeemed
  })

const isSame = ({ couponCode }: Subscription, code: string) => couponCode !== null && keyOf(couponCode) === keyOf(code)

/** Not kept: only to see what would come of it. */
class Rehearsed extends Error {
  constructor(readonly after: Subscription) {
    super('This was a rehearsal.')
  }
}

/**
 * Changes what a subscription costs. Where it is paid already, what would come of it is told to the provider before it is
 * kept, and where something else was kept meanwhile, that is told after all.
 */
async function changed(ctx: Ctx, id: string, change: (tx: Tx, row: Subscription) => Promise<Subscription>) {
  const before = await found(ctx.db, id)
  const paid = isPaid(before)
  if (paid) {
    const after = await rehearsed(ctx, before, change)
    const [was, is] = [priceOf(before), priceOf(after)]
    if (is !== null && is !== was) {
      // Whatever becomes of this: what is kept is what the provider has in the end.
      await ctx.write((tx) => tellPrice(ctx, tx, id, now() + SOON))
      await repriceAtProvider(ctx, before, is)
    }
  }
  try {
    const after = await ctx.write(async (tx) => {
      const row = await found(tx, id)
      const after = { ...(await change(tx, row)), updated: iso(now()) }
      await tx.update(subscriptions).set(after).where(eq(subscriptions._id, id))
      if (before.basePrice === null) await arrange(tx, ctx, after)
      if (row.updated !== before.updated && isPaid(row)) await tellPrice(ctx, tx, id)
      return after
    })
    return shown(after)
  } catch (error) {
    if (paid) await ctx.write((tx) => tellPrice(ctx, tx, id))
    throw error
  }
}

async function rehearsed(
  ctx: Ctx,
  { _id }: Subscription,
  change: (tx: Tx, row: Subscription) => Promise<Subscription>,
): Promise<Subscription> {
  const rehearsal = ctx.write(async (tx) => {
    throw new Rehearsed(await change(tx, await found(tx, _id)))
  })
  return rehearsal.catch((error) => {
    if (error instanceof Rehearsed) return error.after
    throw error
  })
}

/** Whether a provider takes money for it. */
export const isPaid = ({ status, providerKind, externalSubscriptionId }: Subscription) =>
  providerKind !== null && externalSubscriptionId !== null && status !== 'pending' && !ENDED.includes(status)

/** Has the provider told what a subscription costs, as soon as possible. */
export const tellPrice = (tenant: Pick<Tenant, 'tenant'>, tx: Tx, _id: string, at?: number) =>
  enqueue(tenant, tx, { kind: REPRICE, payload: { subscription: _id }, at })

const SOON = 60_000 // ms; longer than a provider may take

/** @throws 502 PROVIDER_ERROR */
async function repriceAtProvider(tenant: Tenant, row: Subscription, amount: number) {
  try {
    const { provider, opened } = await sourceOf(tenant, row)
    await provider.reprice(opened, row, amount)
  } catch (cause) {
    if (cause instanceof Problem && cause.code === 'PROVIDER_ERROR') throw cause
    throw new Problem(
      502,
      'PROVIDER_ERROR',
      'The payment provider could not be told of the price. Nothing was changed.',
      { cause },
    )
  }
}

/** Tells the provider what a subscription costs now. */
export const repricing: Work = {
  patience: Number.POSITIVE_INFINITY,
  async run(tenant, { payload }) {
    const { subscription: id } = payload as { subscription: string }
    let told: number | undefined
    for (;;) {
      const row = await tenant.db.select().from(subscriptions).where(eq(subscriptions._id, id)).get()
      const price = row && isPaid(row) ? priceOf(row) : null
      // It may have changed meanwhile, and somebody else have told that before.
      if (!row || price === null || price === told) return { state: 'done' }
      await repriceAtProvider(tenant, row, price).catch(failing)
      told = price
    }
  },
}
