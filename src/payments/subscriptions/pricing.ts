import { eq } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import { now, toIsoString } from '../../core/clock'
import { Problem } from '../../core/problem'
import { enqueue } from '../../jobs/queue'
import type { JobHandler } from '../../jobs/worker'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { findConnectedKind, requirePositiveAmount } from '../amounts'
import { getSubscriptionProvider } from '../configuration'
import { normalizeCode } from '../coupons/coupons'
import { benefitEndOf, findRedemption, NO_COUPON, redemptionOf } from '../coupons/redemption'
import { requireRedeemableByCode, throwNoRedemptionsLeft } from '../coupons/validation'
import { getPlan } from '../plans'
import { isProviderProblem } from '../providers/errors'
import { type Subscription, subscriptions } from '../tables'
import { throwJobFailure } from './cancellation'
import { carryOut } from './effect-executor'
import { benefitEndPriceOf, checkOf } from './follow-ups'
import { REPRICE_JOB } from './job-kinds'
import { withCoupon } from './new-subscription'
import { priceOf, toSubscription } from './serializer'
import { assertNotEnded, findSubscription, getSubscription } from './subscriptions'
import { isOver } from './transitions'

/**
 * Sets the price of a subscription to a dynamic plan, from the next cycle on.
 * @throws 400 INVALID_AMOUNT, PLAN_NOT_DYNAMIC, 404 SUBSCRIPTION_NOT_FOUND, 409 SUBSCRIPTION_ENDED, 502 PROVIDER_ERROR
 */
export async function setAmount(ctx: Ctx, id: string, { amount }: { amount?: unknown }) {
  const { currency, providerKind } = await getSubscription(ctx.db, id)
  const minor = requirePositiveAmount(amount, currency, providerKind ?? (await findConnectedKind(ctx)))
  return changePrice(ctx, id, async (tx, row) => {
    assertNotEnded(row)
    if (!(await getPlan(tx, row.planId)).dynamic)
      throw new Problem(400, 'PLAN_NOT_DYNAMIC', 'This plan has a fixed price. Change the plan instead.')
    return { ...row, dynamicAmount: minor, basePrice: minor }
  })
}

/**
 * Attaches a coupon, or removes it. An active subscription redeems it at once, others when they become active. The code of
 * the attached coupon changes nothing.
 * @throws 400 COUPON_…, 404 SUBSCRIPTION_NOT_FOUND, COUPON_NOT_FOUND, 409 SUBSCRIPTION_ENDED, 502 PROVIDER_ERROR
 */
export const setCoupon = (ctx: Ctx, id: string, { couponCode: code }: { couponCode: string | null }) =>
  changePrice(ctx, id, async (tx, row) => {
    if (code === null) return { ...row, ...NO_COUPON }
    assertNotEnded(row)
    const attached = await requireRedeemableByCode(tx, code, row, 404).catch((error) => {
      if (hasCouponCode(row, code)) return
      throw error
    })
    if (!attached || attached._id === row.couponId) return row
    const after = withCoupon(row, attached)
    if (row.status !== 'active') return after
    const redemption = await findRedemption(tx, row._id, attached._id)
    if (redemption === 'none left') throwNoRedemptionsLeft()
    const redeemedRow = { ...after, couponBenefitEndsAt: benefitEndOf(after, now()) }
    const redeeming = redemption === 'left' ? redemptionOf(after, attached._id, now(), ctx.actor.user) : []
    await carryOut(tx, ctx, [...redeeming, ...benefitEndPriceOf(redeemedRow)])
    return redeemedRow
  })

const hasCouponCode = ({ couponCode }: Subscription, code: string) =>
  couponCode !== null && normalizeCode(couponCode) === normalizeCode(code)

/** Rolls back a transaction, and carries the subscription as it would have become. */
class DryRunResult extends Error {
  constructor(readonly after: Subscription) {
    super('Dry run.')
  }
}

/**
 * Changes the price of a subscription. If a provider bills it, the provider gets the new price before it is saved. If the
 * subscription changes meanwhile, a job sends the saved price.
 */
async function changePrice(ctx: Ctx, id: string, change: (tx: Tx, row: Subscription) => Promise<Subscription>) {
  const before = await getSubscription(ctx.db, id)
  const wasBilled = isBilled(before)
  if (wasBilled) {
    const after = await dryRun(ctx, before, change)
    const [oldPrice, newPrice] = [priceOf(before), priceOf(after)]
    if (newPrice !== null && newPrice !== oldPrice) {
      // Whatever happens, the provider gets the saved price in the end.
      await ctx.write((tx) => enqueueReprice(ctx, tx, id, now() + REPRICE_DELAY_MS))
      await repriceAtProvider(ctx, before, newPrice)
    }
  }
  try {
    const after = await ctx.write(async (tx) => {
      const row = await getSubscription(tx, id)
      const after = { ...(await change(tx, row)), updated: toIsoString(now()) }
      await tx.update(subscriptions).set(after).where(eq(subscriptions._id, id))
      if (before.basePrice === null) await carryOut(tx, ctx, [checkOf(after, now())])
      if (row.updated !== before.updated && isBilled(row)) await enqueueReprice(ctx, tx, id)
      return after
    })
    return toSubscription(after)
  } catch (error) {
    if (wasBilled) await ctx.write((tx) => enqueueReprice(ctx, tx, id))
    throw error
  }
}

async function dryRun(
  ctx: Ctx,
  { _id }: Subscription,
  change: (tx: Tx, row: Subscription) => Promise<Subscription>,
): Promise<Subscription> {
  const dryRunWrite = ctx.write(async (tx) => {
    throw new DryRunResult(await change(tx, await getSubscription(tx, _id)))
  })
  return dryRunWrite.catch((error) => {
    if (error instanceof DryRunResult) return error.after
    throw error
  })
}

/** Returns whether a provider bills the subscription. */
const isBilled = (row: Subscription) =>
  row.providerKind !== null && row.externalSubscriptionId !== null && row.status !== 'pending' && !isOver(row)

/** Queues a job that sends the price of a subscription to its provider, at once or at a time (ms). */
const enqueueReprice = (tenant: Pick<Tenant, 'tenant'>, tx: Tx, _id: string, at?: number) =>
  enqueue(tenant, tx, { kind: REPRICE_JOB, payload: { subscription: _id }, at })

const REPRICE_DELAY_MS = 60_000 // longer than a provider may take

/** @throws 502 PROVIDER_ERROR */
async function repriceAtProvider(tenant: Tenant, row: Subscription, amount: number) {
  try {
    const { provider, connection } = await getSubscriptionProvider(tenant, row)
    await provider.reprice(connection, row, amount)
  } catch (cause) {
    if (isProviderProblem(cause)) throw cause
    throw new Problem(
      502,
      'PROVIDER_ERROR',
      'The payment provider could not be reached to change the price. Nothing was changed.',
      { cause },
    )
  }
}

/** Sends the current price of a subscription to its provider. */
export const repriceJob: JobHandler = {
  isOutgoing: true,
  retryFor: Number.POSITIVE_INFINITY,
  async run(tenant, { payload }) {
    const { subscription: id } = payload as { subscription: string }
    let sentPrice: number | undefined
    for (;;) {
      const row = await findSubscription(tenant.db, id)
      const price = row && isBilled(row) ? priceOf(row) : null
      // The price may change meanwhile, and another process may send that price first, so it is read again.
      if (!row || price === null || price === sentPrice) return { state: 'done' }
      await repriceAtProvider(tenant, row, price).catch(throwJobFailure)
      sentPrice = price
    }
  },
}
