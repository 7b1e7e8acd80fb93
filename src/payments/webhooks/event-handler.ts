import { and, eq, sql } from 'drizzle-orm'
import { toIsoString } from '../../core/clock'
import type { Tx } from '../../storage/port'
import { prepareQuery } from '../../storage/prepared-statements'
import type { Tenant } from '../../tenancy/tenants'
import { upsertInvoice } from '../invoices/invoice-store'
import type { ProviderEvent, ProviderKind } from '../providers/provider'
import { priceOf } from '../subscriptions/serializer'
import { transition } from '../subscriptions/state-machine'
import { invoices, type ProviderEventRow, type Subscription, subscriptions } from '../tables'
import { retryParkedEvents } from './retry-schedule'

/** What has become of an event, and why, in a sentence. */
export type EventResult = Pick<ProviderEventRow, 'status' | 'subscriptionId' | 'outcome'>

/**
 * Has an event its effect by what is known of where it came from, in the transaction in which that is written down. The
 * connection of a checkout stays the subscription's while it is among the `senders`.
 */
export async function applyEvent(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  { providerKind: kind, source }: Pick<ProviderEventRow, 'providerKind' | 'source'>,
  event: ProviderEvent,
  senders: Set<string>,
): Promise<EventResult> {
  const { meaning, externalSubscriptionId, subscriptionId = null } = event
  if (!meaning) return { status: 'ignored', subscriptionId: null, outcome: `Events of type ${event.type} are ignored.` }
  if (event.tenant !== undefined && event.tenant !== ctx.tenant)
    return { status: 'ignored', subscriptionId: null, outcome: 'The event belongs to another tenant.' }
  const subscription = await findSubscriptionOfEvent(tx, kind, event)
  if (!subscription && !subscriptionId && !externalSubscriptionId)
    return { status: 'ignored', subscriptionId: null, outcome: 'The event names no subscription.' }
  if (!subscription) return { status: 'parked', subscriptionId, outcome: 'The subscription of this event is unknown.' }
  if (meaning === 'expired' && isObsoleteCheckout(subscription, event))
    return { status: 'processed', subscriptionId: subscription._id, outcome: 'The checkout of this event is obsolete.' }
  const { subscription: after, why } = await transition(tx, ctx, subscription, effectiveMeaning(subscription, event), {
    ...event,
    invoice: event.invoice ?? unpaidPaypalInvoice(kind, subscription, event),
    providerKind: kind,
    providerSourceId: senders.has(subscription.providerSourceId ?? '') ? subscription.providerSourceId! : source,
  })
  if (after.externalSubscriptionId && after.externalSubscriptionId !== subscription.externalSubscriptionId)
    await retryParkedEvents(tx, ctx, kind, after.externalSubscriptionId)
  if (kind === 'paypal' && meaning === 'paid') await voidFailedInvoices(tx, ctx, after)
  return { status: 'processed', subscriptionId: subscription._id, outcome: why ?? null }
}

/** The end of a checkout says nothing of the status: one that began with a trial goes on with it. */
function effectiveMeaning(row: Subscription, { meaning, status, externalSubscriptionId: external }: ProviderEvent) {
  const isOwn = external === undefined || external === row.externalSubscriptionId
  return isOwn && meaning === 'activated' && status === undefined && row.status === 'trialing' ? 'updated' : meaning!
}

/** What PayPal could not collect, though it does not say how much. */
function unpaidPaypalInvoice(kind: ProviderKind, subscription: Subscription, { meaning, occurredAt }: ProviderEvent) {
  const amount = priceOf(subscription)
  const { externalSubscriptionId: external, currency } = subscription
  if (kind !== 'paypal' || meaning !== 'payment failed' || !external || !amount) return
  return { externalInvoiceId: `${external}-${toIsoString(occurredAt).slice(0, 10)}`, amount, currency }
}

/** Whether a checkout that ends is none that anybody waits for: it was paid, or another one was begun. */
const isObsoleteCheckout = (
  { status, externalCheckoutId }: Subscription,
  { externalCheckoutId: checkout }: ProviderEvent,
) =>
  checkout !== undefined && (status !== 'pending' || (externalCheckoutId !== null && externalCheckoutId !== checkout))

/**
 * The subscription that an event is about: the one that the provider calls so, else the one that it has from us, else the
 * one that waits for that checkout.
 */
async function findSubscriptionOfEvent(
  tx: Tx,
  kind: ProviderKind,
  { externalSubscriptionId: external, subscriptionId: ours, externalCheckoutId: checkout }: ProviderEvent,
): Promise<Subscription | undefined> {
  const [subscription] = external === undefined ? [] : await selectByExternalId(tx, { kind, external })
  if (subscription) return subscription
  const { _id, providerKind, externalCheckoutId } = subscriptions
  if (ours !== undefined) return tx.select().from(subscriptions).where(eq(_id, ours)).get()
  if (checkout === undefined) return
  const isOfCheckout = and(eq(providerKind, kind), eq(externalCheckoutId, checkout))
  return tx.select().from(subscriptions).where(isOfCheckout).get()
}

const selectByExternalId = prepareQuery((tx) =>
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
export async function voidFailedInvoices(tx: Tx, ctx: Pick<Tenant, 'tenant'>, subscription: Subscription) {
  const { subscriptionId, status } = invoices
  const open = await tx
    .select()
    .from(invoices)
    .where(and(eq(subscriptionId, subscription._id), eq(status, 'open')))
  for (const { externalInvoiceId, amount, currency } of open)
    if (externalInvoiceId.startsWith(`${subscription.externalSubscriptionId}-`))
      await upsertInvoice(tx, ctx, subscription, 'paypal', { externalInvoiceId, amount, currency, status: 'void' })
}
