import { eq } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import { users } from '../../accounts/tables'
import { HOUR_MS, now } from '../../core/clock'
import { getSettings } from '../../platform/settings/tenant-settings'
import { isHttps, requestAuthority } from '../../tenancy/client-connection'
import { paymentsSettings } from '../payments-settings'
import type { CheckoutOrder } from '../providers/provider'
import type { NewCheckout } from '../shapes'
import { planPriceOf } from '../subscriptions/new-subscription'
import type { Subscription } from '../tables'
import { hasOwnPrice, type PreparedCheckout } from './checkout-preparation'

/** How long, in ms, a repeated order gets the same checkout: less than the time in which customers may pay at any provider. */
const CHECKOUT_REUSE_MS = HOUR_MS

/** Returns the order of a checkout. Its key is the same for the same order, until its checkout may be outdated. */
export async function buildOrder(
  ctx: Ctx,
  { subscription, plan, amount, connected: { kind } }: PreparedCheckout,
  input: NewCheckout,
  request: Request,
): Promise<CheckoutOrder> {
  const { _id, currency, billingCycle, billableEntityType: type, billableEntityId: id } = subscription
  const { successUrl, cancelUrl } = await getSettings(ctx, paymentsSettings)
  const fallbackUrl = `${isHttps(request) ? 'https' : 'http'}://${requestAuthority(request)}/`
  const order = {
    ...{ subscriptionId: _id, planName: plan.name, externalIds: plan.externalIds[kind] ?? {} },
    ...{ amount, currency, billingCycle, dynamic: hasOwnPrice(subscription) },
    isPlanPrice: !hasOwnPrice(subscription) && amount === planPriceOf(plan, billingCycle) && currency === plan.currency,
    successUrl: input.successUrl || successUrl || fallbackUrl,
    cancelUrl: input.cancelUrl || cancelUrl || fallbackUrl,
    customer: await findCustomer(ctx, input, subscription),
    metadata: { tenant: ctx.tenant, subscription: _id, entity: `${type}:${id}` },
  }
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
