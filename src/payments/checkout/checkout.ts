import { and, eq, isNull } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import { users } from '../../accounts/tables'
import { HOUR_MS, now, toIsoString } from '../../core/clock'
import { Problem } from '../../core/problem'
import { getSettings } from '../../platform/settings/tenant-settings'
import type { Tx } from '../../storage/port'
import { isHttps, requestAuthority } from '../../tenancy/client-connection'
import type { Tenant } from '../../tenancy/tenants'
import { callerEntity, entityFromInput, requireBuyer, requireOwn } from '../billable-entity'
import { type ConnectedProvider, getActiveProvider, isRedirectUrl } from '../configuration'
import { countCouponAttempt } from '../coupons/validation'
import { paymentsSettings } from '../payments-settings'
import type { CheckoutOrder, ProviderCheckout } from '../providers/provider'
import type { Checkout, NewCheckout } from '../shapes'
import { cancelAtProvider, cancelNow } from '../subscriptions/cancellation'
import { rescheduleLifecycle, scheduleProviderCancel } from '../subscriptions/schedule'
import { emitStatusChange, emitSubscriptionEvent } from '../subscriptions/subscription-events'
import { getSubscription } from '../subscriptions/subscriptions'
import { TERMINAL_STATUSES } from '../subscriptions/transitions'
import { type Subscription, subscriptions } from '../tables'
import { retryParkedEvents } from '../webhooks/retry-schedule'
import { notPendingProblem, type PreparedCheckout, prepareCheckout } from './checkout-preparation'

/**
 * Starts a checkout, of a pending subscription or of a new one. A free subscription is active at once. If the provider
 * fails, everything is rolled back.
 * @throws 400, 403, 404, 409 ACTIVE_SUBSCRIPTION_EXISTS, 500 PAYMENTS_NOT_CONFIGURED, 502 PROVIDER_ERROR
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
    else return startAtProvider(ctx, prepared, connected as ConnectedProvider, input, request)
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
  connected: ConnectedProvider,
  input: NewCheckout,
  request: Request,
): Promise<Checkout> {
  const { _id: subscriptionId } = prepared.subscription
  const createCheckout = async () =>
    connected.provider.createCheckout(connected.connection, await buildOrder(ctx, prepared, connected, input, request))
  const created = await createCheckout().catch(async (error) => {
    await rollBackCheckout(ctx, prepared, error)
    throw error
  })
  const ended = await ctx.write(async (tx) => {
    const row = await getSubscription(tx, subscriptionId)
    const { externalCheckoutId = row.externalCheckoutId, externalSubscriptionId = row.externalSubscriptionId } = created
    const changes = { checkoutUntil: null, updated: toIsoString(now()), externalCheckoutId }
    // The provider may have reported the payment already, with the id of its subscription.
    const linkChange = row.status === 'active' || row.status === 'trialing' ? {} : { externalSubscriptionId }
    await tx
      .update(subscriptions)
      .set({ ...changes, ...linkChange })
      .where(eq(subscriptions._id, subscriptionId))
    if (created.externalSubscriptionId) await retryParkedEvents(tx, ctx, connected.kind, created.externalSubscriptionId)
    if (!prepared.before) await emitStatusChange(ctx, tx, undefined, { ...row, status: 'pending' }, ctx.actor.user)
    const { before } = prepared
    if (row.status !== 'pending' && !TERMINAL_STATUSES.includes(row.status))
      await scheduleProviderCancel(tx, ctx, row._id, { ...row, ...providerLinkOf(created) })
    else if (before) await cancelSuperseded(tx, ctx, before, created)
    const after = { ...row, ...changes, ...linkChange }
    await rescheduleLifecycle(tx, ctx, row, after)
    return row.status === 'canceled' || row.status === 'expired' ? after : undefined
  })
  // The subscription was canceled meanwhile, so the new checkout must not be paid.
  if (ended) return cancelEndedCheckout(ctx, ended)
  const { checkoutUrl, clientToken }: ProviderCheckout = created
  return { subscriptionId, checkoutUrl, clientToken }
}

const providerLinkOf = ({ externalSubscriptionId, externalCheckoutId }: ProviderCheckout) => ({
  externalSubscriptionId: externalSubscriptionId ?? null,
  externalCheckoutId: externalCheckoutId ?? null,
})

/** Cancels the previous checkout, so that it cannot be paid too. */
async function cancelSuperseded(tx: Tx, ctx: Ctx, before: Subscription, created: ProviderCheckout) {
  const { externalSubscriptionId, externalCheckoutId } = providerLinkOf(created)
  const isSame =
    externalSubscriptionId === before.externalSubscriptionId && externalCheckoutId === before.externalCheckoutId
  if (!isSame) await scheduleProviderCancel(tx, ctx, before._id, before)
}

async function cancelEndedCheckout(tenant: Tenant, row: Subscription): Promise<never> {
  const isEnded = await cancelAtProvider(tenant, row).catch(() => false)
  if (!isEnded) await tenant.write((tx) => scheduleProviderCancel(tx, tenant, row._id, row))
  throw notPendingProblem(row)
}

/** Restores the subscription, and reports the failure. The next checkout gets another idempotency key. */
const rollBackCheckout = (ctx: Ctx, { subscription, before }: PreparedCheckout, error: unknown) =>
  ctx.write(async (tx) => {
    const { _id, failedCheckouts, ...row } = subscription
    const code = error instanceof Problem ? error.code : 'INTERNAL'
    await emitSubscriptionEvent(
      ctx,
      tx,
      subscription,
      'checkout-failed',
      { providerKind: row.providerKind, code },
      ctx.actor.user,
    )
    const isStillPending = and(eq(subscriptions._id, _id), eq(subscriptions.status, 'pending'))
    if (!before) return void (await tx.delete(subscriptions).where(isStillPending))
    const { couponId, couponCode, discount, providerKind, providerSourceId, checkoutAmount, ...rest } = before
    const { externalSubscriptionId, externalCheckoutId } = rest
    const attempt = { checkoutUntil: null, checkoutAmount, failedCheckouts: failedCheckouts + 1 }
    const names = { providerKind, providerSourceId, externalSubscriptionId, externalCheckoutId }
    await tx
      .update(subscriptions)
      .set({ ...attempt, ...names })
      .where(isStillPending)
    // An admin may have attached another coupon meanwhile, which is kept.
    const hasSameCoupon =
      row.couponId === null ? isNull(subscriptions.couponId) : eq(subscriptions.couponId, row.couponId)
    await tx.update(subscriptions).set({ couponId, couponCode, discount }).where(and(isStillPending, hasSameCoupon))
  })

/** How long, in ms, the same checkout is reused: PayPal's must be approved within three hours. */
const CHECKOUT_REUSE_MS = HOUR_MS

async function buildOrder(
  ctx: Ctx,
  prepared: PreparedCheckout,
  { connection, kind }: ConnectedProvider,
  input: NewCheckout,
  request: Request,
): Promise<CheckoutOrder> {
  const { subscription, plan, amount } = prepared
  const { _id, currency, billingCycle, billableEntityType: type, billableEntityId: id, discount } = subscription
  const { successUrl, cancelUrl } = await getSettings(ctx, paymentsSettings)
  const fallbackUrl = `${isHttps(request) ? 'https' : 'http'}://${requestAuthority(request)}/`
  const order = {
    ...{ tenant: ctx.tenant, subscriptionId: _id, entity: { type, id }, planName: plan.name },
    ...{
      externalIds: plan.externalIds[kind] ?? {},
      amount,
      basePrice: subscription.basePrice!,
      currency,
      billingCycle,
    },
    dynamic: plan.dynamic,
    discount:
      discount && subscription.couponId && subscription.couponCode
        ? { couponId: subscription.couponId, code: subscription.couponCode, benefit: discount.benefit }
        : null,
    successUrl: input.successUrl || successUrl || fallbackUrl,
    cancelUrl: input.cancelUrl || cancelUrl || fallbackUrl,
    customer: await findCustomer(ctx, input, subscription),
    embedded: (connection.metadata as { checkoutMode?: unknown }).checkoutMode === 'embedded',
    metadata: { tenant: ctx.tenant, subscription: _id, entity: `${type}:${id}` },
  }
  // A repeated order has the same key, so the provider returns the same checkout, except for an outdated one.
  const age = Math.floor((now() - Date.parse(subscription.created)) / CHECKOUT_REUSE_MS)
  const fingerprint = new Bun.CryptoHasher('sha256')
    .update(JSON.stringify([order, subscription.failedCheckouts, age]))
    .digest('hex')
  return { ...order, key: `checkout:${_id}:${fingerprint.slice(0, 32)}` }
}

/** Returns the customer: the given data, completed by the account that the subscription is for, else by the caller's. */
async function findCustomer({ db, actor }: Ctx, { customer = {} }: NewCheckout, subscription: Subscription) {
  const user = subscription.billableEntityType === 'user' ? subscription.billableEntityId : actor.user
  const { email, fullName } = users
  const account = await db.select({ email, name: fullName }).from(users).where(eq(users._id, user)).get()
  return { name: customer.name ?? account?.name ?? undefined, email: customer.email ?? account?.email ?? undefined }
}
