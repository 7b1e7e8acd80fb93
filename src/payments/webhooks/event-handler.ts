import { and, eq } from 'drizzle-orm'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { providerOf } from '../providers'
import type { ProviderEvent, ProviderKind } from '../providers/provider'
import { findByExternalId, transition } from '../subscriptions/state-machine'
import type { TransitionInput } from '../subscriptions/transition-input'
import { type ProviderEventRow, type Subscription, subscriptions } from '../tables'

/** The result of an event. `outcome` is a sentence that explains it. */
export type EventResult = Pick<ProviderEventRow, 'status' | 'subscriptionId' | 'outcome'>

type Sender = Pick<ProviderEventRow, 'providerKind' | 'source'>

/** Applies an event in the transaction that stores it, and returns its result. */
export async function applyEvent(
  tx: Tx,
  ctx: Pick<Tenant, 'tenant'>,
  sender: Sender,
  event: ProviderEvent,
  senders: Set<string>,
): Promise<EventResult> {
  const { meaning, externalSubscriptionId, subscriptionId = null } = event
  if (event.unreadable) return { status: 'failed', subscriptionId: null, outcome: event.unreadable }
  if (!meaning) return { status: 'ignored', subscriptionId: null, outcome: `Events of type ${event.type} are ignored.` }
  if (event.tenant !== undefined && event.tenant !== ctx.tenant)
    return { status: 'ignored', subscriptionId: null, outcome: 'The event belongs to another tenant.' }
  const subscription = await findSubscriptionOfEvent(tx, sender.providerKind, event)
  if (!subscription && !subscriptionId && !externalSubscriptionId)
    return { status: 'ignored', subscriptionId: null, outcome: 'The event names no subscription.' }
  if (!subscription) return { status: 'parked', subscriptionId, outcome: 'The subscription of this event is unknown.' }
  const { _id } = subscription
  if (isObsoleteCheckout(subscription, event, senders))
    return { status: 'processed', subscriptionId: _id, outcome: 'The checkout of this event is obsolete.' }
  const input = toTransitionInput(subscription, sender, event, senders)
  const { why } = await transition(tx, ctx, subscription, effectiveMeaning(subscription, event), input)
  return { status: 'processed', subscriptionId: _id, outcome: why ?? null }
}

/**
 * Returns the input of the transition that an event means. The subscription keeps its connection if that is among the
 * `senders`, else it gets the one that verified the event.
 */
export function toTransitionInput(
  row: Subscription,
  { providerKind, source }: Sender,
  event: ProviderEvent,
  senders: Set<string>,
): TransitionInput {
  const placeholder =
    event.meaning === 'payment failed' && !event.invoice
      ? providerOf(providerKind).createPlaceholderInvoice?.(row, event)
      : undefined
  return {
    ...{ ...event, invoice: event.invoice ?? placeholder, providerKind },
    providerSourceId: senders.has(row.providerSourceId ?? '') ? row.providerSourceId! : source,
  }
}

/** The end of a checkout says nothing about the status, so a subscription that began with a trial stays in it. */
export function effectiveMeaning(
  row: Subscription,
  { meaning, status, externalSubscriptionId: external }: ProviderEvent,
) {
  const isOwn = external === undefined || external === row.externalSubscriptionId
  return isOwn && meaning === 'activated' && status === undefined && row.status === 'trialing' ? 'updated' : meaning!
}

/** Returns whether a checkout that has expired is obsolete: it was paid, or another one was started. */
function isObsoleteCheckout(
  { status, externalCheckoutId, providerSourceId }: Subscription,
  { meaning, externalCheckoutId: checkout }: ProviderEvent,
  senders: Set<string>,
) {
  if (meaning !== 'expired') return false
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
  const subscription = external === undefined ? undefined : await findByExternalId(tx, { kind, external })
  if (subscription) return subscription
  const { _id, providerKind, externalCheckoutId } = subscriptions
  if (ours !== undefined) return tx.select().from(subscriptions).where(eq(_id, ours)).get()
  if (checkout === undefined) return
  const isOfCheckout = and(eq(providerKind, kind), eq(externalCheckoutId, checkout))
  return tx.select().from(subscriptions).where(isOfCheckout).get()
}
