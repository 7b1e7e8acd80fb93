import { emit } from '../../jobs/outbox'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { Subscription } from '../tables'
import { type Status, shownStatus } from './transitions'

type TenantRef = Pick<Tenant, 'tenant'>

const EVENT_NAME_BY_STATUS: Record<Status, string> = {
  pending: 'subscription-created',
  active: 'subscription-activated',
  trialing: 'subscription-trialing',
  past_due: 'subscription-past-due',
  paused: 'subscription-paused',
  lapsed: 'subscription-canceled',
  canceled: 'subscription-canceled',
  abandoned: 'subscription-expired',
  expired: 'subscription-expired',
}

/** Returns the name of the event about a change, or undefined if there is nothing to tell. */
function eventNameOf(before: Subscription | undefined, after: Subscription): string | undefined {
  if (before?.status !== after.status) {
    const isTold = before && EVENT_NAME_BY_STATUS[before.status] === EVENT_NAME_BY_STATUS[after.status]
    return isTold ? undefined : EVENT_NAME_BY_STATUS[after.status]
  }
  if (!before.pause !== !after.pause) return after.pause ? 'subscription-paused' : 'subscription-resumed'
  return before.currentPeriodEnd === after.currentPeriodEnd ? undefined : 'subscription-renewed'
}

/** Emits an event if the status or the pause of a subscription has changed, or its period was renewed. */
export async function emitStatusChange(
  ctx: TenantRef,
  tx: Tx,
  before: Subscription | undefined,
  after: Subscription,
  by?: string,
) {
  const eventName = eventNameOf(before, after)
  if (!eventName) return
  const metadata = { status: shownStatus(after), before: before && shownStatus(before) }
  await emitSubscriptionEvent(
    ctx,
    tx,
    after,
    eventName,
    after.pause ? { ...metadata, pause: after.pause } : metadata,
    by,
  )
}

/** Emits an event about a subscription. */
export async function emitSubscriptionEvent(
  ctx: TenantRef,
  tx: Tx,
  { _id, planId, billableEntityType: type, billableEntityId: entity }: Subscription,
  eventName: string,
  metadata: Record<string, unknown>,
  by?: string,
) {
  await emit(ctx, tx, {
    ...{ source: 'payments', kind: 'subscription', eventName },
    metadata: { subscriptionId: _id, planId, billableEntityType: type, billableEntityId: entity, ...metadata },
    user: by ?? (type === 'user' ? entity : null),
    workspace: type === 'workspace' ? entity : null,
  })
}

/** Emits an event about a transition that a provider reported and that is not possible. */
export const emitWebhookFailure = (
  ctx: TenantRef,
  tx: Tx,
  subscription: Subscription,
  metadata: Record<string, unknown>,
) => emitSubscriptionEvent(ctx, tx, subscription, 'webhook-failed', metadata)
