import { eq } from 'drizzle-orm'
import { DAY, now } from '../../core/clock'
import { Problem } from '../../core/problem'
import type { Work } from '../../jobs/work'
import type { Tenant } from '../../tenancy/tenants'
import { type Source, sourceOf } from '../configuration'
import type { Attachment } from '../subscriptions/arranging'
import { failing } from '../subscriptions/ending'
import { ENDED } from '../subscriptions/moves'
import { type Subscription, subscriptions } from '../tables'
import { keepInvoices, reconcile } from './reconciling'

const HOUR = 3_600_000
/**
 * For so long somebody may still approve what was begun at PayPal, which can't be called off. Of subscriptions PayPal does not
 * say how long; its tokens to approve are good for three hours unless somebody has agreed on more, or for 72
 * (https://developer.paypal.com/api/nvp-soap/troubleshooting/10411, github.com/paypal/paypal-checkout-components/issues/369).
 */
const PATIENCE = 3 * DAY

/**
 * Ends at the provider what nobody here goes by. What was paid meanwhile, and is what the subscription waits for, begins
 * instead.
 */
export const callingOff: Work = {
  patience: Number.POSITIVE_INFINITY,
  async run(tenant, { payload, created }) {
    const { subscription: id, ...attachment } = payload as { subscription: string } & Attachment
    const row = await rowOf(tenant, id)
    const source = row && (await sourceOf(tenant, attachment).catch(unlessGone))
    if (!row || !source) return { state: 'done' }
    const external = await externalOf(source, attachment).catch(failing)
    const those = { ...row, ...attachment, externalSubscriptionId: external ?? null }
    const used = await isInUse(tenant, row, those).catch(failing)
    const current = (await rowOf(tenant, id)) ?? row
    // By an earlier checkout it was paid: the later one is not to be, too.
    if (isEarlier(current, those)) {
      const later = { ...current, externalSubscriptionId: null }
      await source.provider.cancel(source.opened, later).catch(failing)
    }
    if (used) return { state: 'done' }
    const over = await source.provider.cancel(source.opened, those).catch(failing)
    if (over && external) await keepInvoices(tenant, source, row, external).catch(failing)
    if (over || now() - created > PATIENCE) return { state: 'done' }
    return { state: 'again', due: now() + HOUR }
  },
}

const rowOf = ({ db }: Tenant, id: string): Promise<Subscription | undefined> =>
  db.select().from(subscriptions).where(eq(subscriptions._id, id)).get()

const isEarlier = (row: Subscription, { externalSubscriptionId: id, externalCheckoutId: checkout }: Attachment) =>
  id !== null &&
  id === row.externalSubscriptionId &&
  checkout !== null &&
  row.externalCheckoutId !== null &&
  checkout !== row.externalCheckoutId

const unlessGone = (error: unknown) => {
  if (error instanceof Problem && error.status === 404) return undefined
  throw error
}

async function externalOf(
  { provider, opened }: Source,
  { externalSubscriptionId: id, externalCheckoutId }: Attachment,
) {
  if (id !== null || externalCheckoutId === null) return id ?? undefined
  return provider.subscriptionOf?.(opened, externalCheckoutId)
}

/** Whether the subscription goes by it, or does from now on. */
async function isInUse(tenant: Tenant, row: Subscription, those: Subscription): Promise<boolean> {
  if (ENDED.includes(row.status)) return false
  const { externalSubscriptionId: id, externalCheckoutId: checkout } = those
  if (id === null) return checkout === row.externalCheckoutId
  if (row.externalSubscriptionId === id) return true
  if (row.status !== 'pending') return false
  await reconcile(tenant, { ...those, drift: row.drift })
  return (await rowOf(tenant, row._id))?.externalSubscriptionId === id
}
