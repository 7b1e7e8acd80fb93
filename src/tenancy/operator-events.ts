import { lt } from 'drizzle-orm'
import { config } from '../config'
import { DAY_MS, now, toIsoString } from '../core/clock'
import type { Tx } from '../storage/port'
import { operatorEvents } from './tables'

/** What operators and the command line do with tenants. */
export type OperatorEventName =
  | 'tenant-created'
  | 'tenant-suspended'
  | 'tenant-resumed'
  | 'tenant-deleted'
  | 'tenant-moved'
  | 'hosts-changed'
  | 'limits-changed'
  | 'support-opened'

/** Records an event in the registry's transaction that causes it, and removes those that are older than events are kept. */
export async function recordOperatorEvent(
  tx: Tx,
  eventName: OperatorEventName,
  tenant: string,
  metadata: Record<string, unknown> = {},
) {
  const time = now()
  const expired = lt(operatorEvents.created, toIsoString(time - config.ATOLL_EVENT_RETENTION * DAY_MS))
  await tx.delete(operatorEvents).where(expired)
  const row = { _id: Bun.randomUUIDv7(), eventName, tenant, metadata, created: toIsoString(time) }
  await tx.insert(operatorEvents).values(row)
}
