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

/** The result of an event. `outcome` is a sentence that explains it. */
export type EventResult = Pick<ProviderEventRow, 'status' | 'subscriptionId' | 'outcome'>

/**
 * Applies an event in the transaction that stores it, and returns its result. The subscription keeps its connection if that
 * is among the `senders`, else it gets the one that verified the event.
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

/** The end of a checkout says nothing about the status, so a subscription that began with a trial stays in it. */
function effectiveMeaning(row: Subscription, { meaning, status, externalSubscriptionId: external }: ProviderEvent) {
  const isOwn = external === undefined || external === row.externalSubscriptionId
  return isOwn && meaning === 'activated' && status === undefined && row.status === 'trialing' ? 'updated' : meaning!
}

/** Returns an open invoice for a failed payment of PayPal, whose event may name no amount. */
function unpaidPaypalInvoice(kind: ProviderKind, subscription: Subscription, { meaning, occurredAt }: ProviderEvent) {
  const amount = priceOf(subscription)
  const { externalSubscriptionId: external, currency } = subscription
  if (kind !== 'paypal' || meaning !== 'payment failed' || !external || !amount) return
  return { externalInvoiceId: `${external}-${toIsoString(occurredAt).slice(0, 10)}`, amount, currency }
}

/** Returns whether an expired checkout is obsolete: it was paid, or another one was started. */
const isObsoleteCheckout = (
  { status, externalCheckoutId }: Subscription,
  { externalCheckoutId: checkout }: ProviderEvent,
) =>
  checkout !== undefined && (status !== 'pending' || (externalCheckoutId !== null && externalCheckoutId !== checkout))

/**
 * Returns the subscription of an event: by the provider's id, else by our id, else by the id of its checkout.
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

/** Voids the open PayPal invoices of a subscription: a failed payment has no id there, and is paid by another one. */
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
