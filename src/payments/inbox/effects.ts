import { and, eq, sql } from 'drizzle-orm'
import { iso } from '../../core/clock'
import { compiled } from '../../storage/compiled'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { settleInvoice } from '../invoices/keeping'
import type { ProviderEvent, ProviderKind } from '../providers/provider'
import { moved } from '../subscriptions/machine'
import { priceOf } from '../subscriptions/shown'
import { invoices, type ProviderEventRow, type Subscription, subscriptions } from '../tables'
import { turnedUp } from './parked'

/** What has become of an event, and why, in a sentence. */
export type Effect = Pick<ProviderEventRow, 'status' | 'subscriptionId' | 'outcome'>

/**
 * Has an event its effect by what is known of where it came from, in the transaction in which that is written down. The
 * connection of a checkout stays the subscription's while it is among the `senders`.
 */
export async function effectOf(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  { providerKind: kind, source }: Pick<ProviderEventRow, 'providerKind' | 'source'>,
  event: ProviderEvent,
  senders: Set<string>,
): Promise<Effect> {
  const { meaning, externalSubscriptionId, subscriptionId = null } = event
  if (!meaning) return { status: 'ignored', subscriptionId: null, outcome: `Nothing follows from ${event.type}.` }
  if (event.tenant !== undefined && event.tenant !== ctx.tenant)
    return { status: 'ignored', subscriptionId: null, outcome: 'It is about a subscription of another tenant.' }
  const subscription = await subjectOf(tx, kind, event)
  if (!subscription && !subscriptionId && !externalSubscriptionId)
    return { status: 'ignored', subscriptionId: null, outcome: 'It is about no subscription.' }
  if (!subscription)
    return { status: 'parked', subscriptionId, outcome: 'It is about a subscription that is not known here.' }
  if (meaning === 'expired' && isOver(subscription, event))
    return { status: 'processed', subscriptionId: subscription._id, outcome: 'Its checkout counts no more.' }
  const { subscription: after, why } = await moved(tx, ctx, subscription, meaningFor(subscription, event), {
    ...event,
    invoice: event.invoice ?? owed(kind, subscription, event),
    providerKind: kind,
    providerSourceId: senders.has(subscription.providerSourceId ?? '') ? subscription.providerSourceId! : source,
  })
  if (after.externalSubscriptionId && after.externalSubscriptionId !== subscription.externalSubscriptionId)
    await turnedUp(tx, ctx, kind, after.externalSubscriptionId)
  if (kind === 'paypal' && meaning === 'paid') await forgive(tx, ctx, after)
  return { status: 'processed', subscriptionId: subscription._id, outcome: why ?? null }
}

/** The end of a checkout says nothing of the status: one that began with a trial goes on with it. */
function meaningFor(row: Subscription, { meaning, status, externalSubscriptionId: external }: ProviderEvent) {
  const isOwn = external === undefined || external === row.externalSubscriptionId
  return isOwn && meaning === 'activated' && status === undefined && row.status === 'trialing' ? 'updated' : meaning!
}

/** What PayPal could not collect, though it does not say how much. */
function owed(kind: ProviderKind, subscription: Subscription, { meaning, occurredAt }: ProviderEvent) {
  const amount = priceOf(subscription)
  const { externalSubscriptionId: external, currency } = subscription
  if (kind !== 'paypal' || meaning !== 'payment failed' || !external || !amount) return
  return { externalInvoiceId: `${external}-${iso(occurredAt).slice(0, 10)}`, amount, currency }
}

/** Whether a checkout that ends is none that anybody waits for: it was paid, or another one was begun. */
const isOver = ({ status, externalCheckoutId }: Subscription, { externalCheckoutId: checkout }: ProviderEvent) =>
  checkout !== undefined && (status !== 'pending' || (externalCheckoutId !== null && externalCheckoutId !== checkout))

/**
 * The subscription that an event is about: the one that the provider calls so, else the one that it has from us, else the
 * one that waits for that checkout.
 */
async function subjectOf(
  tx: Tx,
  kind: ProviderKind,
  { externalSubscriptionId: external, subscriptionId: ours, externalCheckoutId: checkout }: ProviderEvent,
): Promise<Subscription | undefined> {
  const [known] = external === undefined ? [] : await byExternal(tx, { kind, external })
  if (known) return known
  const { _id, providerKind, externalCheckoutId } = subscriptions
  if (ours !== undefined) return tx.select().from(subscriptions).where(eq(_id, ours)).get()
  if (checkout === undefined) return
  const begun = and(eq(providerKind, kind), eq(externalCheckoutId, checkout))
  return tx.select().from(subscriptions).where(begun).get()
}

const byExternal = compiled((tx) =>
  tx
    .select()
    .from(subscriptions)
    .where(
      and(
        eq(subscriptions.providerKind, sql.placeholder('kind')),
        eq(subscriptions.externalSubscriptionId, sql.placeholder('external')),
      ),
    ),
)

/** A payment of PayPal's that failed has no name there by which it could be paid: what comes instead is another. */
export async function forgive(tx: Tx, ctx: Pick<Tenant, 'tenant'>, subscription: Subscription) {
  const { subscriptionId, status } = invoices
  const open = await tx
    .select()
    .from(invoices)
    .where(and(eq(subscriptionId, subscription._id), eq(status, 'open')))
  for (const { externalInvoiceId, amount, currency } of open)
    if (externalInvoiceId.startsWith(`${subscription.externalSubscriptionId}-`))
      await settleInvoice(tx, ctx, subscription, 'paypal', { externalInvoiceId, amount, currency, status: 'void' })
}
