import { and, eq, gt } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import { now } from '../../core/clock'
import { badRequest, Problem } from '../../core/problem'
import type { Tx } from '../../storage/port'
import { assertHeld, requirePositiveAmount } from '../amounts'
import {
  assertEntityExists,
  callerEntity,
  entityFromInput,
  requireOwn,
  subscriptionsOfEntity,
} from '../billable-entity'
import type { ConnectedProvider } from '../configuration'
import { requireRedeemableByCode, requireRedeemableById, throwNoRedemptionsLeft } from '../coupons/validation'
import type { NewCheckout } from '../shapes'
import { carryOut } from '../subscriptions/effect-executor'
import { providerCancelOf, statusEventOf } from '../subscriptions/follow-ups'
import { getActivePlan, insertPending, newSubscription, withCoupon } from '../subscriptions/new-subscription'
import { isPaidLater, priceOf } from '../subscriptions/serializer'
import { findActiveSubscription, transition } from '../subscriptions/state-machine'
import { getSubscription } from '../subscriptions/subscriptions'
import { shownStatus } from '../subscriptions/transitions'
import { type Plan, type ProviderKind, type Subscription, subscriptions, VARYING_CHECKOUT_AMOUNT } from '../tables'

/** How long, in ms, no other checkout of the entity may start: longer than a provider may take. */
const CHECKOUT_CLAIM_MS = 60_000

/** A checkout that is not started at the provider yet. `before` is the previous row of the subscription, if any. */
export type PreparedCheckout = {
  subscription: Subscription
  plan: Plan
  before?: Subscription
  /** The price of each cycle, in minor units. */
  amount: number
  connected: ConnectedProvider
}

/**
 * The result of a preparation: the subscription is free and active, another subscription has to be canceled first
 * (`inTheWay`), or the checkout is ready to start.
 */
export type CheckoutPreparation = { free: Subscription } | { inTheWay: Subscription } | PreparedCheckout

/**
 * Validates a checkout, in the documented order of errors, and then claims it for the entity. Nothing is written before.
 * @throws 400, 403, 404, 409 ACTIVE_SUBSCRIPTION_EXISTS, 500 PAYMENTS_NOT_CONFIGURED
 */
export async function prepareCheckout(
  tx: Tx,
  ctx: Ctx,
  input: NewCheckout,
  source: ConnectedProvider | Problem,
): Promise<CheckoutPreparation> {
  const kind = source instanceof Problem ? null : source.kind
  const { row, plan, before } = input.subscriptionId
    ? await loadPendingSubscription(tx, ctx, input.subscriptionId)
    : await draftSubscription(tx, ctx, input, kind)
  const current = await findActiveSubscription(tx, row)
  if (current && !input.reset) throw activeExistsProblem(current._id)
  const inTheWay = current ?? (input.reset && (await findPastDue(tx, row)))
  await assertNoOtherCheckout(tx, row)
  const subscription = await applyCoupon(tx, row, input.couponCode)
  const amount = priceOf({ ...subscription, providerKind: kind }) ?? throwUnpriced(plan)
  const connected = amount > 0 || isPaidLater(subscription) ? requirePayable(source, subscription, plan) : undefined
  if (inTheWay) return { inTheWay }
  if (!connected) return { free: await activateFree(tx, ctx, subscription, before) }
  const claimed = {
    ...subscription,
    ...providerFields(connected, subscription),
    checkoutUntil: now() + CHECKOUT_CLAIM_MS,
    checkoutAmount: [null, amount].includes(subscription.checkoutAmount) ? amount : VARYING_CHECKOUT_AMOUNT,
  }
  await saveSubscription(tx, ctx, claimed, before)
  return { subscription: claimed, plan, before, amount, connected }
}

/** Loads a pending subscription of the caller. */
async function loadPendingSubscription(tx: Tx, ctx: Ctx, id: string) {
  const before = requireOwn(ctx, await getSubscription(tx, id))
  const plan = await getActivePlan(tx, before.planId)
  if (plan.dynamic && !before.dynamicAmount) throwUnpriced(plan)
  if (before.status !== 'pending') throw notPendingProblem(before)
  return { row: before, plan, before }
}

/** @throws 400 DYNAMIC_AMOUNT_NOT_SET */
function throwUnpriced({ dynamic }: Plan): never {
  const message = dynamic
    ? 'An administrator must set the price of this subscription first.'
    : 'This subscription has no price, because its plan had none. Create a new subscription.'
  throw new Problem(400, 'DYNAMIC_AMOUNT_NOT_SET', message)
}

export const notPendingProblem = (row: Pick<Subscription, 'status'>) =>
  new Problem(
    400,
    'SUBSCRIPTION_NOT_PENDING',
    `This subscription is ${shownStatus(row)}. Only pending subscriptions can be paid.`,
  )

/** Returns a new subscription, which is not inserted yet, to a plan with a known price. */
async function draftSubscription(
  tx: Tx,
  ctx: Ctx,
  input: NewCheckout,
  kind: ProviderKind | null,
): Promise<{ row: Subscription; plan: Plan; before?: undefined }> {
  const { planId, billingCycle, amount } = input
  if (!planId) return badRequest({ path: '/planId', message: 'subscriptionId or planId is required.' })
  const plan = await getActivePlan(tx, planId)
  const isPriceGiven = plan.dynamic && ctx.actor.privileged && amount !== undefined && amount !== null
  const minor = isPriceGiven ? requirePositiveAmount(amount, plan.currency, kind) : null
  if (plan.dynamic && minor === null) {
    const message =
      'This plan is priced per subscription. Create a subscription first and have an administrator set its price.'
    throw new Problem(400, 'DYNAMIC_PLAN_REQUIRES_SUBSCRIPTION', message)
  }
  if (!billingCycle) return badRequest({ path: '/billingCycle', message: 'billingCycle must be monthly or yearly.' })
  const entity = entityFromInput(ctx, input) ?? callerEntity(ctx)
  await assertEntityExists(tx, entity)
  return { row: newSubscription(plan, billingCycle, entity, minor), plan }
}

/** Returns the overdue subscription of an entity. It may still be paid, so a new one besides it would be paid twice. */
const findPastDue = (tx: Tx, row: Subscription) =>
  tx
    .select()
    .from(subscriptions)
    .where(and(subscriptionsOfEntity(row), eq(subscriptions.status, 'past_due')))
    .get()

const activeExistsProblem = (existingSubscriptionId: string) =>
  new Problem(409, 'ACTIVE_SUBSCRIPTION_EXISTS', 'An active subscription already exists. Cancel it first.', {
    details: { existingSubscriptionId },
  })

/** Refuses a second concurrent checkout, because both could be paid. @throws 409 ACTIVE_SUBSCRIPTION_EXISTS */
async function assertNoOtherCheckout(tx: Tx, row: Subscription) {
  const busy = and(
    subscriptionsOfEntity(row),
    eq(subscriptions.status, 'pending'),
    gt(subscriptions.checkoutUntil, now()),
  )
  const other = await tx.select({ _id: subscriptions._id }).from(subscriptions).where(busy).get()
  if (other) throw otherCheckoutProblem(other._id)
}

export const otherCheckoutProblem = (existingSubscriptionId: string) =>
  new Problem(409, 'ACTIVE_SUBSCRIPTION_EXISTS', 'Another checkout is being started. Try again in a moment.', {
    details: { existingSubscriptionId },
    headers: { 'retry-after': '1' },
  })

/** Applies the given coupon, or checks that the attached one can still be redeemed. */
async function applyCoupon(tx: Tx, row: Subscription, code: string | null | undefined) {
  if (code) return withCoupon(row, await requireRedeemableByCode(tx, code, row))
  if (row.couponId) await requireRedeemableById(tx, row.couponId, row)
  return row
}

/** Returns the provider of a checkout. @throws `source` if it is a problem, 400 MISSING_EXTERNAL_PRICE_ID */
function requirePayable(source: ConnectedProvider | Problem, row: Subscription, plan: Plan): ConnectedProvider {
  if (source instanceof Problem) throw source
  const { provider, connection, kind } = source
  const externalIds = plan.externalIds[kind] ?? {}
  assertHeld(row.basePrice!, row.currency, kind)
  if (isPaidLater(row) && provider.needsPaidStart) throw notFreeAtStartProblem(kind)
  provider.assertPriceConfigured?.(connection, {
    externalIds,
    billingCycle: row.billingCycle,
    dynamic: hasOwnPrice(row),
  })
  return source
}

const notFreeAtStartProblem = (kind: ProviderKind) =>
  new Problem(
    400,
    'COUPON_NOT_APPLICABLE',
    `${kind} cannot begin a subscription for free that is paid later. Use a coupon of less than 100 %.`,
  )

/** Returns whether the price was set for this subscription alone, whatever its plan is now. */
export const hasOwnPrice = ({ dynamicAmount }: Subscription) => dynamicAmount !== null

/** Returns the link to a provider. The ids of a previous connection are dropped. */
const providerFields = ({ kind, connection }: ConnectedProvider, { providerSourceId }: Subscription) => ({
  ...(providerSourceId !== connection._id && { externalSubscriptionId: null, externalCheckoutId: null }),
  ...{ providerKind: kind, providerSourceId: connection._id },
})

async function saveSubscription(tx: Tx, ctx: Ctx, row: Subscription, before: Subscription | undefined) {
  if (before) await tx.update(subscriptions).set(row).where(eq(subscriptions._id, row._id))
  else await insertPending(tx, ctx, row)
}

const NO_PROVIDER = {
  providerKind: null,
  providerSourceId: null,
  externalSubscriptionId: null,
  externalCheckoutId: null,
}

/** Activates a free subscription without a provider, and cancels the checkouts that were started before. */
async function activateFree(tx: Tx, ctx: Ctx, priced: Subscription, before: Subscription | undefined) {
  const row = { ...priced, ...NO_PROVIDER }
  await saveSubscription(tx, ctx, row, before)
  const { user: by } = ctx.actor
  await carryOut(tx, ctx, before ? providerCancelOf(before._id, before) : statusEventOf(undefined, row, by))
  const { subscription } = await transition(tx, ctx, row, 'activated', { by })
  if (subscription.couponId !== row.couponId) throwNoRedemptionsLeft()
  return subscription
}
