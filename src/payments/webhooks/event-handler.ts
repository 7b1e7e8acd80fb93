import { and, eq, sql } from 'drizzle-orm'
import type { Tx } from '../../storage/port'
import { prepareQuery } from '../../storage/prepared-statements'
import type { Tenant } from '../../tenancy/tenants'
import { voidPlaceholderInvoices } from '../invoices/invoice-store'
import { providerOf } from '../providers'
import type { ProviderEvent, ProviderKind } from '../providers/provider'
import { transition } from '../subscriptions/state-machine'
import { type ProviderEventRow, type Subscription, subscriptions } from '../tables'
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
  if (event.unreadable) return { status: 'failed', subscriptionId: null, outcome: event.unreadable }
  if (!meaning) return { status: 'ignored', subscriptionId: null, outcome: `Events of type ${event.type} are ignored.` }
  if (event.tenant !== undefined && event.tenant !== ctx.tenant)
    return { status: 'ignored', subscriptionId: null, outcome: 'The event belongs to another tenant.' }
  const subscription = await findSubscriptionOfEvent(tx, kind, event)
  if (!subscription && !subscriptionId && !externalSubscriptionId)
    return { status: 'ignored', subscriptionId: null, outcome: 'The event names no subscription.' }
  if (!subscription) return { status: 'parked', subscriptionId, outcome: 'The subscription of this event is unknown.' }
  if (meaning === 'expired' && isObsoleteCheckout(subscription, event, senders))
    return { status: 'processed', subscriptionId: subscription._id, outcome: 'The checkout of this event is obsolete.' }
  const isFailure = meaning === 'payment failed'
  const { subscription: after, why } = await transition(tx, ctx, subscription, effectiveMeaning(subscription, event), {
    ...event,
    invoice:
      event.invoice ?? (isFailure ? providerOf(kind).createPlaceholderInvoice?.(subscription, event) : undefined),
    providerKind: kind,
    providerSourceId: senders.has(subscription.providerSourceId ?? '') ? subscription.providerSourceId! : source,
  })
  if (after.externalSubscriptionId && after.externalSubscriptionId !== subscription.externalSubscriptionId)
    await retryParkedEvents(tx, ctx, kind, after.externalSubscriptionId)
  if (meaning === 'paid' && !isOverdueSince(after, event)) await voidPlaceholderInvoices(tx, ctx, after, kind)
  return { status: 'processed', subscriptionId: subscription._id, outcome: why ?? null }
}

/** Returns whether a later payment than that of the event has failed. */
const isOverdueSince = ({ pastDueSince }: Subscription, { occurredAt }: ProviderEvent) =>
  pastDueSince !== null && Date.parse(pastDueSince) > occurredAt

/** The end of a checkout says nothing about the status, so a subscription that began with a trial stays in it. */
function effectiveMeaning(row: Subscription, { meaning, status, externalSubscriptionId: external }: ProviderEvent) {
  const isOwn = external === undefined || external === row.externalSubscriptionId
  return isOwn && meaning === 'activated' && status === undefined && row.status === 'trialing' ? 'updated' : meaning!
}

/** Returns whether a checkout that has expired is obsolete: it was paid, or another one was started. */
function isObsoleteCheckout(
  { status, externalCheckoutId, providerSourceId }: Subscription,
  { externalCheckoutId: checkout }: ProviderEvent,
  senders: Set<string>,
) {
  const isOfOtherConnection = providerSourceId !== null && !senders.has(providerSourceId)
  if (status === 'pending' && isOfOtherConnection) return true
  return checkout !== undefined && (status !== 'pending' || (externalCheckoutId ?? checkout) !== checkout)
}

/** Returns the subscription of an event: by the provider's id, else by our id, else by the id of its checkout. */
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
