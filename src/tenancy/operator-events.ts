import { AsyncLocalStorage } from 'node:async_hooks'
import { lt } from 'drizzle-orm'
import { config } from '../config'
import { DAY_MS, now, toIsoString } from '../core/clock'
import type { Tx } from '../storage/port'
import { operatorEvents } from './tables'

/** What operators and the command line do with tenants, and what they need to know of them. */
export type OperatorEventName =
  | 'tenant-created'
  | 'tenant-suspended'
  | 'tenant-resumed'
  | 'tenant-deleted'
  | 'tenant-moved'
  | 'tenant-restored'
  | 'tenant-restore-undone'
  | 'tenant-cloned'
  | 'tenant-outgoing-resumed'
  | 'tenant-imported'
  | 'backup-failed'
  | 'hosts-changed'
  | 'default-tenant-changed'
  | 'limits-changed'
  | 'quotas-changed'
  | 'quota-warning'
  | 'quota-reached'
  | 'support-opened'
  | 'operator-token-created'
  | 'operator-token-removed'
  | 'certificate-issued'
  | 'certificate-failed'

const currentOperator = new AsyncLocalStorage<{ name?: string }>()

/** Handles a request of the operator, whose events say which token made it. */
export const handleAsOperator = <T>(handle: () => T): T => currentOperator.run({}, handle)

/** Names the token that makes the current request. */
export function nameOperator(name: string) {
  const operator = currentOperator.getStore()
  if (operator) operator.name = name
}

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
  const by = currentOperator.getStore()?.name
  const row = {
    ...{ _id: Bun.randomUUIDv7(), eventName, tenant, created: toIsoString(time) },
    metadata: by ? { ...metadata, by } : metadata,
  }
  await tx.insert(operatorEvents).values(row)
}
