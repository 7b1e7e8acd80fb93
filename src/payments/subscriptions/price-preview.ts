import type { Ctx } from '../../accounts/context'
import { now, parseIsoDateTime, toIsoString } from '../../core/clock'
import { badRequest } from '../../core/problem'
import { findConnectedKind, requirePositiveAmount } from '../amounts'
import { callerEntity, requireOwn } from '../billable-entity'
import { countedStarts, cycleSpan } from '../billing-period'
import { benefitEndOf } from '../coupons/redemption'
import { requireRedeemableByCode } from '../coupons/validation'
import { fromMinorUnits } from '../money'
import type { PricePreview, PricePreviewRequest } from '../shapes'
import type { Subscription } from '../tables'
import { getActivePlan, newSubscription, withCoupon } from './new-subscription'
import { isPaidLater, priceOf } from './serializer'
import { getSubscription } from './subscriptions'
import { isOver } from './transitions'

const DEFAULT_PAYMENTS = 12 // of a year, when they are monthly

/**
 * Returns what a customer would pay who subscribes to a plan at `start`, by the rules of a checkout at that time. Nothing is
 * stored.
 * @throws 400 PLAN_NOT_ACTIVE, INVALID_AMOUNT, COUPON_…, INVALID_INPUT for a start, 404 PLAN_NOT_FOUND
 */
export async function previewPlan(ctx: Ctx, id: string, input: PricePreviewRequest): Promise<PricePreview> {
  const start = parseStart(input.start)
  const plan = await getActivePlan(ctx.db, id)
  const providerKind = await findConnectedKind(ctx)
  const amount = plan.dynamic ? requirePositiveAmount(input.amount, plan.currency, providerKind) : null
  const fresh = { ...newSubscription(plan, input.billingCycle, callerEntity(ctx), amount), providerKind }
  const code = input.couponCode
  const row = code ? withCoupon(fresh, await requireRedeemableByCode(ctx.db, code, fresh, 400, start)) : fresh
  return preview(withBenefit(row, start), start, input.payments ?? DEFAULT_PAYMENTS)
}

/** Returns the next payments of a subscription, none if it ends before. @throws 403, 404 SUBSCRIPTION_NOT_FOUND */
export async function previewSubscription(ctx: Ctx, id: string): Promise<PricePreview> {
  const row = requireOwn(ctx, await getSubscription(ctx.db, id))
  const isEnding = isOver(row) || row.status === 'paused' || row.cancelAtPeriodEnd || row.cancelRequested !== null
  const count = isEnding || row.basePrice === null ? 0 : DEFAULT_PAYMENTS
  const isNew = row.status === 'pending' || row.currentPeriodEnd === null
  const start = isNew ? now() : Date.parse(row.currentPeriodEnd!)
  // An active subscription has redeemed its coupon; others redeem it at their next payment.
  return preview(row.status === 'active' ? row : withBenefit(row, start), start, count)
}

/** @throws 400 INVALID_INPUT when a start is no time */
function parseStart(text: string | undefined): number {
  if (text === undefined) return now()
  return (
    parseIsoDateTime(text) ??
    badRequest({ path: '/start', message: 'start must be a date and time such as 2026-01-31T12:00:00Z.' })
  )
}

/** Returns the subscription as it is after a period began that redeems its coupon, unless it was redeemed before. */
function withBenefit(row: Subscription, start: number): Subscription {
  const begun = { ...row, currentPeriodStart: toIsoString(start) }
  return { ...begun, couponBenefitEndsAt: row.couponBenefitEndsAt ?? benefitEndOf(begun, start) }
}

/** A subscription that begins with a price of 0 has no provider, so nobody pays later either. */
const isFree = (row: Subscription, start: number) =>
  row.externalSubscriptionId === null &&
  (row.status === 'pending' ? priceOf(row, start) === 0 && !isPaidLater(row) : true)

function preview(row: Subscription, start: number, count: number): PricePreview {
  const { currency, billingCycle, basePrice, couponBenefitEndsAt } = row
  const startOf = countedStarts(row.periodAnchor, cycleSpan(billingCycle), start)
  const free = isFree(row, start)
  const payments = Array.from({ length: count }, (_, n) => {
    const at = startOf(n)
    const amount = free ? 0 : (priceOf(row, at) ?? 0)
    const reason = free ? ('free' as const) : amount === basePrice ? ('price' as const) : ('coupon' as const)
    return { at, until: startOf(n + 1), amount, reason }
  })
  const decimal = (minor: number) => fromMinorUnits(minor, currency)
  return {
    ...{ currency, billingCycle, couponBenefitEndsAt, isFree: free },
    basePrice: basePrice === null ? null : decimal(basePrice),
    total: decimal(payments.reduce((sum, { amount }) => sum + amount, 0)),
    payments: payments.map(({ at, until, amount, reason }) => ({
      ...{ date: toIsoString(at), periodEnd: toIsoString(until), amount: decimal(amount), reason },
    })),
  }
}
