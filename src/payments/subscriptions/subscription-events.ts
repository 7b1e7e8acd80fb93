import { emit } from '../../jobs/outbox'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { Subscription } from '../tables'
import type { Status } from './transitions'

type TenantRef = Pick<Tenant, 'tenant'>

const EVENT_NAME_BY_STATUS: Record<Status, string> = {
  pending: 'subscription-created',
  active: 'subscription-activated',
  trialing: 'subscription-trialing',
  past_due: 'subscription-past-due',
  canceled: 'subscription-canceled',
  expired: 'subscription-expired',
}

/** Emits an event if the status of a subscription has changed, or its period was renewed. */
export async function emitStatusChange(
  ctx: TenantRef,
  tx: Tx,
  before: Subscription | undefined,
  after: Subscription,
  by?: string,
) {
  const renewed = before?.currentPeriodEnd !== after.currentPeriodEnd
  if (before?.status === after.status && !renewed) return
  const eventName = before?.status === after.status ? 'subscription-renewed' : EVENT_NAME_BY_STATUS[after.status]
  await emitSubscriptionEvent(ctx, tx, after, eventName, { status: after.status, before: before?.status }, by)
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
