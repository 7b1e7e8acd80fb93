import { eq } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import { now, toIsoString } from '../../core/clock'
import { Problem } from '../../core/problem'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { callerEntity, entityFromInput, requireBuyer, requireOwn } from '../billable-entity'
import { getActiveProvider, isRedirectUrl } from '../configuration'
import { countCouponAttempt } from '../coupons/validation'
import type { ProviderCheckout } from '../providers/provider'
import type { Checkout, NewCheckout } from '../shapes'
import { cancelAtProvider, cancelNow } from '../subscriptions/cancellation'
import { carryOut } from '../subscriptions/effect-executor'
import { changedCheckOf, providerCancelOf, statusEventOf } from '../subscriptions/follow-ups'
import { isSameLink } from '../subscriptions/schedule'
import { findSubscription, getSubscription } from '../subscriptions/subscriptions'
import { isOver } from '../subscriptions/transitions'
import { type Subscription, subscriptions } from '../tables'
import { notPendingProblem, otherCheckoutProblem, type PreparedCheckout, prepareCheckout } from './checkout-preparation'
import { buildOrder } from './order'

/**
 * Starts a checkout, of a pending subscription or of a new one. A free subscription is active at once. If the provider
 * fails, everything is rolled back.
 * @throws 400, 403, 404, 409 ACTIVE_SUBSCRIPTION_EXISTS, 500 PAYMENTS_NOT_CONFIGURED, 502 PROVIDER_ERROR,
 * 503 PROVIDER_BUSY
 */
export async function startCheckout(ctx: Ctx, input: NewCheckout, request: Request): Promise<Checkout> {
  assertRedirectUrls(input)
  await requireBuyer(ctx, await resolveEntity(ctx, input))
  if (input.couponCode) countCouponAttempt(ctx, request)
  const connected = await getActiveProvider(ctx).catch(problemOrThrow)
  for (;;) {
    const prepared = await ctx.write((tx) => prepareCheckout(tx, ctx, input, connected))
    if ('free' in prepared) return { subscriptionId: prepared.free._id, checkoutUrl: null, clientToken: null }
    if ('inTheWay' in prepared) await cancelNow(ctx, prepared.inTheWay, ctx.actor.user)
    else return startAtProvider(ctx, prepared, input, request)
  }
}

/** Returns the entity of a checkout. @throws 403 for a subscription of another entity, 404 SUBSCRIPTION_NOT_FOUND */
const resolveEntity = async (ctx: Ctx, { subscriptionId, ...input }: NewCheckout) =>
  subscriptionId
    ? requireOwn(ctx, await getSubscription(ctx.db, subscriptionId))
    : (entityFromInput(ctx, input) ?? callerEntity(ctx))

/** @throws 400 INVALID_REDIRECT_URL */
function assertRedirectUrls({ successUrl, cancelUrl }: NewCheckout) {
  for (const [name, url] of Object.entries({ successUrl, cancelUrl }))
    if (url && !isRedirectUrl(url)) {
      const message = `${name} must be an absolute http or https URL, such as https://app.example.com/paid.`
      throw new Problem(400, 'INVALID_REDIRECT_URL', message)
    }
}

/** Returns a problem instead of throwing it, because it does not matter if the subscription turns out to be free. */
const problemOrThrow = (error: unknown): Problem => {
  if (error instanceof Problem) return error
  throw error
}

async function startAtProvider(
  ctx: Ctx,
  prepared: PreparedCheckout,
  input: NewCheckout,
  request: Request,
): Promise<Checkout> {
  const { provider, connection } = prepared.connected
  const createCheckout = async () =>
    provider.createCheckout(connection, await buildOrder(ctx, prepared, input, request))
  const created = await createCheckout().catch(async (error) => {
    await rollBackCheckout(ctx, prepared, error)
    throw error
  })
  const { subscription, isReplaced } = await ctx.write((tx) => saveCheckout(tx, ctx, prepared, created))
  if (isReplaced) throw otherCheckoutProblem(subscription._id)
  // The subscription was canceled meanwhile, so the new checkout must not be paid.
  if (isOver(subscription)) return cancelEndedCheckout(ctx, subscription)
  const { checkoutUrl, clientToken } = created
  return { subscriptionId: subscription._id, checkoutUrl, clientToken }
}

/**
 * Stores the ids of a checkout that was created. Cancels the checkout that it replaces; or the new one, if the subscription
 * was paid meanwhile, or if the new one `isReplaced` by another that was started after its claim had expired.
 */
async function saveCheckout(
  tx: Tx,
  ctx: Ctx,
  { subscription: claimed, before, connected }: PreparedCheckout,
  created: ProviderCheckout,
) {
  const row = await getSubscription(tx, claimed._id)
  const { externalSubscriptionId = null, externalCheckoutId = null } = created
  const link = { ...claimed, externalSubscriptionId, externalCheckoutId }
  if (!before) await carryOut(tx, ctx, statusEventOf(undefined, { ...row, status: 'pending' }, ctx.actor.user))
  if (row.status === 'pending' && row.checkoutUntil !== claimed.checkoutUntil) {
    const isReplaced = !isSameLink(row, link)
    if (isReplaced) await carryOut(tx, ctx, providerCancelOf(row._id, link))
    return { subscription: row, isReplaced }
  }
  const isPaid = row.status !== 'pending' && !isOver(row)
  const changes = {
    ...{ checkoutUntil: null, updated: toIsoString(now()) },
    // What was paid keeps its checkout and the id that the provider has reported, and the new one is not used.
    externalCheckoutId: isPaid ? row.externalCheckoutId : (externalCheckoutId ?? row.externalCheckoutId),
    externalSubscriptionId: isPaid
      ? row.externalSubscriptionId
      : (externalSubscriptionId ?? row.externalSubscriptionId),
  }
  await tx.update(subscriptions).set(changes).where(eq(subscriptions._id, row._id))
  const after = { ...row, ...changes }
  const unused = isPaid ? link : before && !isSameLink(before, link) ? before : undefined
  const { kind: providerKind } = connected
  await carryOut(tx, ctx, [
    ...(externalSubscriptionId ? [{ kind: 'retry parked events' as const, providerKind, externalSubscriptionId }] : []),
    ...(unused ? providerCancelOf(row._id, unused) : []),
    ...changedCheckOf(row, after, now()),
  ])
  return { subscription: after, isReplaced: false }
}

async function cancelEndedCheckout(tenant: Tenant, row: Subscription): Promise<never> {
  const isEnded = await cancelAtProvider(tenant, row).catch(() => false)
  if (!isEnded) await tenant.write((tx) => carryOut(tx, tenant, providerCancelOf(row._id, row)))
  throw notPendingProblem(row)
}

/** Restores the subscription, and reports the failure. The next checkout gets another idempotency key. */
const rollBackCheckout = (ctx: Ctx, { subscription: claimed, before }: PreparedCheckout, error: unknown) =>
  ctx.write(async (tx) => {
    const { _id, providerKind } = claimed
    const code = error instanceof Problem ? error.code : 'INTERNAL'
    const event = { eventName: 'checkout-failed', metadata: { providerKind, code }, by: ctx.actor.user }
    await carryOut(tx, ctx, [{ kind: 'emit event', subscription: claimed, ...event }])
    const row = await findSubscription(tx, _id)
    // It was paid or canceled meanwhile, or another checkout was started after the claim had expired.
    if (row?.status !== 'pending' || row.checkoutUntil !== claimed.checkoutUntil) return
    if (!before) return void (await tx.delete(subscriptions).where(eq(subscriptions._id, _id)))
    const { couponId, couponCode, discount, providerSourceId, checkoutAmount } = before
    const { externalSubscriptionId, externalCheckoutId } = before
    await tx
      .update(subscriptions)
      .set({
        ...{ checkoutUntil: null, checkoutAmount, failedCheckouts: claimed.failedCheckouts + 1 },
        ...{ providerKind: before.providerKind, providerSourceId, externalSubscriptionId, externalCheckoutId },
        // An admin may have attached another coupon meanwhile, which is kept.
        ...(row.couponId === claimed.couponId && { couponId, couponCode, discount }),
      })
      .where(eq(subscriptions._id, _id))
  })
