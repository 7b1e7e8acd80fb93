import { and, eq, gt } from 'drizzle-orm'
import type { Ctx } from '../../accounts/guard'
import { now } from '../../core/clock'
import { invalid, Problem } from '../../core/problem'
import type { Tx } from '../../storage/port'
import { ofEntity, ownEntity, refuseForeign, refuseNobody, saidEntity } from '../billable'
import type { Source } from '../configuration'
import { attached, coupon, noneLeft } from '../coupons/validation'
import type { NewCheckout } from '../shapes'
import { callOff } from '../subscriptions/arranging'
import { inForce, moved } from '../subscriptions/machine'
import { add, newSubscription, planFor, positive, withCoupon } from '../subscriptions/making'
import { priceOf } from '../subscriptions/shown'
import { found } from '../subscriptions/subscriptions'
import { tell } from '../subscriptions/telling'
import { type Plan, SEVERAL, type Subscription, subscriptions } from '../tables'

/** For so long nobody else begins a checkout of the same entity: longer than a provider may take. In ms. */
const CLAIM = 60_000

/** A checkout for which the provider has yet to be asked. `before` is the subscription as it was, if there was one. */
export type Begun = { subscription: Subscription; plan: Plan; before?: Subscription; amount: number }

/** What came of it at once: nothing is to be paid, or the entity has a subscription that the caller wants to end first. */
export type Begin = { free: Subscription } | { inTheWay: Subscription } | Begun

/**
 * Judges what is asked for, in the order of the contract, and claims the checkout of the entity: until then nothing is
 * written. @throws 400, 403, 404, 409 ACTIVE_SUBSCRIPTION_EXISTS, 500 PAYMENTS_NOT_CONFIGURED
 */
export async function begin(tx: Tx, ctx: Ctx, input: NewCheckout, source: Source | Problem): Promise<Begin> {
  const { row, plan, before } = input.subscriptionId
    ? await existing(tx, ctx, input.subscriptionId)
    : await fresh(tx, ctx, input)
  const current = await inForce(tx, row)
  if (current && !input.reset) throw inForceAlready(current._id)
  const inTheWay = current ?? (input.reset && (await pastDue(tx, row)))
  await refuseBusy(tx, row)
  const subscription = await discounted(tx, row, input.couponCode)
  const amount = priceOf(subscription)!
  if (amount > 0) refuseUnpayable(source, subscription, plan)
  if (inTheWay) return { inTheWay }
  if (amount === 0) return { free: await activated(tx, ctx, subscription, before) }
  const claimed = {
    ...subscription,
    ...paidBy(source as Source, subscription),
    checkoutUntil: now() + CLAIM,
    checkoutAmount: [null, amount].includes(subscription.checkoutAmount) ? amount : SEVERAL,
  }
  await kept(tx, ctx, claimed, before)
  return { subscription: claimed, plan, before, amount }
}

/** A subscription that waits. */
async function existing(tx: Tx, ctx: Ctx, id: string) {
  const before = refuseForeign(ctx, await found(tx, id))
  const plan = await planFor(tx, before.planId)
  if (plan.dynamic && !before.dynamicAmount)
    throw new Problem(400, 'DYNAMIC_AMOUNT_NOT_SET', 'An administrator has to say first what this subscription costs.')
  if (before.status !== 'pending') throw notPending(before)
  return { row: before, plan, before }
}

export const notPending = ({ status }: Pick<Subscription, 'status'>) =>
  new Problem(400, 'SUBSCRIPTION_NOT_PENDING', `This subscription is ${status}: only one that is pending can be paid.`)

/** A new one, of a plan whose price is known. */
async function fresh(
  tx: Tx,
  ctx: Ctx,
  input: NewCheckout,
): Promise<{ row: Subscription; plan: Plan; before?: undefined }> {
  const { planId, billingCycle, amount } = input
  if (!planId) return invalid({ path: '/planId', message: 'Say what is to be paid: subscriptionId or planId.' })
  const plan = await planFor(tx, planId)
  const said = plan.dynamic && ctx.actor.privileged && amount !== undefined && amount !== null
  const minor = said ? positive(amount, plan.currency) : null
  if (plan.dynamic && minor === null) {
    const message =
      'The price of this plan is made for each subscription: make one first, and have an administrator set it.'
    throw new Problem(400, 'DYNAMIC_PLAN_REQUIRES_SUBSCRIPTION', message)
  }
  if (!billingCycle) return invalid({ path: '/billingCycle', message: 'billingCycle must be monthly or yearly.' })
  const entity = saidEntity(ctx, input) ?? ownEntity(ctx)
  await refuseNobody(tx, entity)
  return { row: newSubscription(plan, billingCycle, entity, minor), plan }
}

/** What is not paid yet may still be: who begins anew would pay both. */
const pastDue = (tx: Tx, row: Subscription) =>
  tx
    .select()
    .from(subscriptions)
    .where(and(ofEntity(row), eq(subscriptions.status, 'past_due')))
    .get()

const inForceAlready = (existingSubscriptionId: string) =>
  new Problem(409, 'ACTIVE_SUBSCRIPTION_EXISTS', 'There is a subscription already. Cancel that one first.', {
    details: { existingSubscriptionId },
  })

/** Of two checkouts at once the second is refused: both could be paid. */
async function refuseBusy(tx: Tx, row: Subscription) {
  const busy = and(ofEntity(row), eq(subscriptions.status, 'pending'), gt(subscriptions.checkoutUntil, now()))
  const other = await tx.select({ _id: subscriptions._id }).from(subscriptions).where(busy).get()
  if (!other) return
  throw new Problem(409, 'ACTIVE_SUBSCRIPTION_EXISTS', 'Another checkout is being started. Try again in a moment.', {
    details: { existingSubscriptionId: other._id },
    headers: { 'retry-after': '1' },
  })
}

/** With the coupon that is named now, else with the one that it has, if that is still good. */
async function discounted(tx: Tx, row: Subscription, code: string | null | undefined) {
  if (code) return withCoupon(row, await coupon(tx, code, row))
  if (row.couponId) await attached(tx, row.couponId, row)
  return row
}

function refuseUnpayable(source: Source | Problem, { billingCycle }: Subscription, plan: Plan) {
  if (source instanceof Problem) throw source
  const { provider, opened, kind } = source
  provider.refuse?.(opened, { externalIds: plan.externalIds[kind] ?? {}, billingCycle, dynamic: plan.dynamic })
}

/** Another provider knows nothing of what was begun at the one before. */
const paidBy = ({ kind, opened }: Source, { providerSourceId }: Subscription) => ({
  ...(providerSourceId !== opened._id && { externalSubscriptionId: null, externalCheckoutId: null }),
  ...{ providerKind: kind, providerSourceId: opened._id },
})

async function kept(tx: Tx, ctx: Ctx, row: Subscription, before: Subscription | undefined) {
  if (before) await tx.update(subscriptions).set(row).where(eq(subscriptions._id, row._id))
  else await add(tx, ctx, row)
}

const NOWHERE = { providerKind: null, providerSourceId: null, externalSubscriptionId: null, externalCheckoutId: null }

/** What costs nothing needs no provider; what was begun there before is not to be paid any more. */
async function activated(tx: Tx, ctx: Ctx, priced: Subscription, before: Subscription | undefined) {
  const row = { ...priced, ...NOWHERE }
  await kept(tx, ctx, row, before)
  if (before) await callOff(tx, ctx, before._id, before)
  if (!before) await tell(ctx, tx, undefined, row, ctx.actor.user)
  const { subscription } = await moved(tx, ctx, row, 'activated', { by: ctx.actor.user })
  if (subscription.couponId !== row.couponId) noneLeft()
  return subscription
}
