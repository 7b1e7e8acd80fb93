import { and, eq } from 'drizzle-orm'
import { DAY_MS, now } from '../../core/clock'
import { enqueue, listQueued } from '../../jobs/queue'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { ProviderKind } from '../providers/provider'
import { type ProviderEventRow, providerEvents } from '../tables'

export const RETRY_EVENTS_JOB = 'payments-inbox'

const FIRST_RETRY_DELAY_MS = 5_000
const MAX_RETRY_DELAY_MS = 3_600_000
const RETRY_EVENTS_FOR_MS = 30 * DAY_MS

const { _id, status, providerKind, externalSubscriptionId } = providerEvents

/** When (ms) an event is tried again: every few seconds for an hour, then ever more rarely, for a month. */
export function nextRetryAt({ created }: Pick<ProviderEventRow, 'created'>): number | undefined {
  const age = now() - Date.parse(created)
  if (age > RETRY_EVENTS_FOR_MS) return
  return now() + (age < MAX_RETRY_DELAY_MS ? FIRST_RETRY_DELAY_MS : Math.min(MAX_RETRY_DELAY_MS, age / 60))
}

/** Has what waits looked at. Of two looks one comes after this, so none is needed beyond that. */
export async function scheduleRetry(tx: Tx, ctx: Pick<Tenant, 'tenant'>, at: number) {
  if ((await listQueued(tx, RETRY_EVENTS_JOB, 2)).length < 2)
    await enqueue(ctx, tx, { kind: RETRY_EVENTS_JOB, orderingKey: RETRY_EVENTS_JOB, at })
}

/** A provider's subscription is known from now on: what was told of it before comes into effect. */
export async function retryParkedEvents(tx: Tx, ctx: Pick<Tenant, 'tenant'>, kind: ProviderKind, external: string) {
  const those = and(eq(status, 'parked'), eq(externalSubscriptionId, external), eq(providerKind, kind))
  const woken = await tx.update(providerEvents).set({ nextAt: now() }).where(those).returning({ _id })
  if (woken.length) await scheduleRetry(tx, ctx, now())
}
