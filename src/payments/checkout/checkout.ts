import { and, eq, isNull } from 'drizzle-orm'
import type { Ctx } from '../../accounts/guard'
import { settingsOf } from '../../accounts/settings'
import { users } from '../../accounts/tables'
import { iso, now } from '../../core/clock'
import { Problem } from '../../core/problem'
import type { Tx } from '../../storage/port'
import { authorityOf, isSecure } from '../../tenancy/caller'
import type { Tenant } from '../../tenancy/tenants'
import { ownEntity, refuseForeign, requireBuyer, saidEntity } from '../billable'
import { isPage, type Source, source } from '../configuration'
import { countCouponAttempt } from '../coupons/validation'
import { turnedUp } from '../inbox/parked'
import type { Checkout as Made, Order } from '../providers/provider'
import type { Checkout, NewCheckout } from '../shapes'
import { callOff, rearrange } from '../subscriptions/arranging'
import { end, endAtProvider } from '../subscriptions/ending'
import { ENDED } from '../subscriptions/moves'
import { found } from '../subscriptions/subscriptions'
import { note, tell } from '../subscriptions/telling'
import { type Subscription, subscriptions } from '../tables'
import { type Begun, begin, notPending } from './begin'

/**
 * Begins a checkout, for a subscription that waits or for a new one. What costs nothing is active at once. Where the
 * provider fails, all is as it was before.
 * @throws 400, 403, 404, 409 ACTIVE_SUBSCRIPTION_EXISTS, 500 PAYMENTS_NOT_CONFIGURED, 502 PROVIDER_ERROR
 */
export async function checkout(ctx: Ctx, input: NewCheckout, request: Request): Promise<Checkout> {
  refuseAddresses(input)
  await requireBuyer(ctx, await entityOf(ctx, input))
  if (input.couponCode) countCouponAttempt(ctx, request)
  const by = await source(ctx).catch(asProblem)
  for (;;) {
    const begun = await ctx.write((tx) => begin(tx, ctx, input, by))
    if ('free' in begun) return { subscriptionId: begun.free._id, checkoutUrl: null, clientToken: null }
    if ('inTheWay' in begun) await end(ctx, begun.inTheWay, ctx.actor.user)
    else return pay(ctx, begun, by as Source, input, request)
  }
}

/** For whom it is. @throws 403 for somebody else's, 404 */
const entityOf = async (ctx: Ctx, { subscriptionId, ...input }: NewCheckout) =>
  subscriptionId ? refuseForeign(ctx, await found(ctx.db, subscriptionId)) : (saidEntity(ctx, input) ?? ownEntity(ctx))

/** @throws 400 INVALID_REDIRECT_URL */
function refuseAddresses({ successUrl, cancelUrl }: NewCheckout) {
  for (const [name, url] of Object.entries({ successUrl, cancelUrl }))
    if (url && !isPage(url)) {
      const message = `${name} must be an absolute address with http or https, such as https://app.example.com/paid.`
      throw new Problem(400, 'INVALID_REDIRECT_URL', message)
    }
}

/** Why nobody can pay counts only where something is to be paid. */
const asProblem = (error: unknown): Problem => {
  if (error instanceof Problem) return error
  throw error
}

async function pay(ctx: Ctx, begun: Begun, by: Source, input: NewCheckout, request: Request): Promise<Checkout> {
  const { _id: subscriptionId } = begun.subscription
  const making = async () => by.provider.createCheckout(by.opened, await orderOf(ctx, begun, by, input, request))
  const made = await making().catch(async (error) => {
    await takeBack(ctx, begun, error)
    throw error
  })
  const ended = await ctx.write(async (tx) => {
    const row = await found(tx, subscriptionId)
    const { externalCheckoutId = row.externalCheckoutId, externalSubscriptionId = row.externalSubscriptionId } = made
    const changes = { checkoutUntil: null, updated: iso(now()), externalCheckoutId }
    // Its provider may have told already that it was paid.
    const known = row.status === 'active' || row.status === 'trialing' ? {} : { externalSubscriptionId }
    await tx
      .update(subscriptions)
      .set({ ...changes, ...known })
      .where(eq(subscriptions._id, subscriptionId))
    if (made.externalSubscriptionId) await turnedUp(tx, ctx, by.kind, made.externalSubscriptionId)
    if (!begun.before) await tell(ctx, tx, undefined, { ...row, status: 'pending' }, ctx.actor.user)
    const { before } = begun
    if (row.status !== 'pending' && !ENDED.includes(row.status))
      await callOff(tx, ctx, row._id, { ...row, ...attachmentOf(made) })
    else if (before) await supersede(tx, ctx, before, made)
    const after = { ...row, ...changes, ...known }
    await rearrange(tx, ctx, row, after)
    return row.status === 'canceled' || row.status === 'expired' ? after : undefined
  })
  // Somebody has canceled it meanwhile: then nobody shall pay for it.
  if (ended) return endAgain(ctx, ended)
  const { checkoutUrl, clientToken }: Made = made
  return { subscriptionId, checkoutUrl, clientToken }
}

const attachmentOf = ({ externalSubscriptionId, externalCheckoutId }: Made) => ({
  externalSubscriptionId: externalSubscriptionId ?? null,
  externalCheckoutId: externalCheckoutId ?? null,
})

/** What was begun before is not to be paid, too. */
async function supersede(tx: Tx, ctx: Ctx, before: Subscription, made: Made) {
  const { externalSubscriptionId, externalCheckoutId } = attachmentOf(made)
  const isSame =
    externalSubscriptionId === before.externalSubscriptionId && externalCheckoutId === before.externalCheckoutId
  if (!isSame) await callOff(tx, ctx, before._id, before)
}

async function endAgain(tenant: Tenant, row: Subscription): Promise<never> {
  const over = await endAtProvider(tenant, row).catch(() => false)
  if (!over) await tenant.write((tx) => callOff(tx, tenant, row._id, row))
  throw notPending(row)
}

/** As if nothing had been asked, but for the record; and the next checkout is another one to the provider. */
const takeBack = (ctx: Ctx, { subscription, before }: Begun, error: unknown) =>
  ctx.write(async (tx) => {
    const { _id, failedCheckouts, ...begun } = subscription
    const code = error instanceof Problem ? error.code : 'INTERNAL'
    await note(ctx, tx, subscription, 'checkout-failed', { providerKind: begun.providerKind, code }, ctx.actor.user)
    const still = and(eq(subscriptions._id, _id), eq(subscriptions.status, 'pending'))
    if (!before) return void (await tx.delete(subscriptions).where(still))
    const { couponId, couponCode, discount, providerKind, providerSourceId, checkoutAmount, ...rest } = before
    const { externalSubscriptionId, externalCheckoutId } = rest
    const attempt = { checkoutUntil: null, checkoutAmount, failedCheckouts: failedCheckouts + 1 }
    const names = { providerKind, providerSourceId, externalSubscriptionId, externalCheckoutId }
    await tx
      .update(subscriptions)
      .set({ ...attempt, ...names })
      .where(still)
    // An admin may have attached another meanwhile.
    const own = begun.couponId === null ? isNull(subscriptions.couponId) : eq(subscriptions.couponId, begun.couponId)
    await tx.update(subscriptions).set({ couponId, couponCode, discount }).where(and(still, own))
  })

/** For so long a checkout is not begun anew, in ms: PayPal has it approved within three hours. */
const FRESH = 3_600_000

async function orderOf(
  ctx: Ctx,
  begun: Begun,
  { opened, kind }: Source,
  input: NewCheckout,
  request: Request,
): Promise<Order> {
  const { subscription, plan, amount } = begun
  const { _id, currency, billingCycle, billableEntityType: type, billableEntityId: id, discount } = subscription
  const { successUrl, cancelUrl } = await settingsOf(ctx, 'payments-configuration')
  const here = `${isSecure(request) ? 'https' : 'http'}://${authorityOf(request)}/`
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
    successUrl: input.successUrl || successUrl || here,
    cancelUrl: input.cancelUrl || cancelUrl || here,
    customer: await customerOf(ctx, input, subscription),
    embedded: (opened.metadata as { checkoutMode?: unknown }).checkoutMode === 'embedded',
    metadata: { tenant: ctx.tenant, subscription: _id, entity: `${type}:${id}` },
  }
  // The same checkout asked for once more is the same to the provider; but nobody can pay in an old one.
  const age = Math.floor((now() - Date.parse(subscription.created)) / FRESH)
  const print = new Bun.CryptoHasher('sha256')
    .update(JSON.stringify([order, subscription.failedCheckouts, age]))
    .digest('hex')
  return { ...order, key: `checkout:${_id}:${print.slice(0, 32)}` }
}

/** Who is charged, as far as anybody says: who it is for, else who asks. */
async function customerOf({ db, actor }: Ctx, { customer = {} }: NewCheckout, subscription: Subscription) {
  const user = subscription.billableEntityType === 'user' ? subscription.billableEntityId : actor.user
  const { email, fullName } = users
  const known = await db.select({ email, name: fullName }).from(users).where(eq(users._id, user)).get()
  return { name: customer.name ?? known?.name ?? undefined, email: customer.email ?? known?.email ?? undefined }
}
