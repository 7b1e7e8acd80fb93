import { and, eq } from 'drizzle-orm'
import { DAY_MS, HOUR_MS, now } from '../../core/clock'
import { enqueue, listQueued } from '../../jobs/queue'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { Action } from '../subscriptions/effects'
import { type ProviderEventRow, providerEvents } from '../tables'

export const RETRY_EVENTS_JOB = 'payments-inbox'

const FIRST_RETRY_DELAY_MS = 5_000
const MAX_RETRY_DELAY_MS = HOUR_MS
const RETRY_EVENTS_FOR_MS = 30 * DAY_MS

const { _id, status, providerKind, externalSubscriptionId } = providerEvents

/**
 * Returns when (ms) an event is retried: every 5 seconds for an hour, then ever more rarely, but at least once an hour.
 * Returns undefined after 30 days.
 */
export function nextRetryAt({ created }: Pick<ProviderEventRow, 'created'>): number | undefined {
  const age = now() - Date.parse(created)
  if (age > RETRY_EVENTS_FOR_MS) return
  return now() + (age < MAX_RETRY_DELAY_MS ? FIRST_RETRY_DELAY_MS : Math.min(MAX_RETRY_DELAY_MS, Math.round(age / 60)))
}

/** Queues a retry job. If two are queued, one of them runs after this transaction, so no third is needed. */
export async function scheduleRetry(tx: Tx, ctx: Pick<Tenant, 'tenant'>, at: number) {
  if ((await listQueued(tx, RETRY_EVENTS_JOB, 2)).length < 2)
    await enqueue(ctx, tx, { kind: RETRY_EVENTS_JOB, orderingKey: RETRY_EVENTS_JOB, at })
}

/** Retries the parked events of a provider's subscription, which has become known. */
export const retryParkedEvents: Action<'retry parked events'> = async (tx, ctx, effect) => {
  const isParkedForSubscription = and(
    eq(status, 'parked'),
    eq(externalSubscriptionId, effect.externalSubscriptionId),
    eq(providerKind, effect.providerKind),
  )
  const woken = await tx.update(providerEvents).set({ nextAt: now() }).where(isParkedForSubscription).returning({ _id })
  if (woken.length) await scheduleRetry(tx, ctx, now())
}
