import { gt } from 'drizzle-orm'
import { lastEventSeq } from '../jobs/event-dispatcher'
import { events } from '../jobs/tables'
import type { Tx } from '../storage/port'
import { wrapWrite } from '../storage/write-wrapper'
import type { Tenant } from '../tenancy/tenants'

/** How many runs of integrations may follow from each other: an event that so many led to is heard by none. */
export const MAX_RUN_DEPTH = 5

/** Of which integration's run something comes, and how many runs led to it. */
export type Cause = { cause: string; depth: number }

/** The same tenant, whose events are marked by what caused them, whoever tells them. */
export const withCause = <T extends Tenant>(tenant: T, cause: Cause): T => ({
  ...tenant,
  write: wrapWrite(tenant.write, (tx, work) => markEvents(tx, cause, work)),
})

/** Marks the events of a transaction's part. Nobody else writes meanwhile. */
export async function markEvents<R>(tx: Tx, cause: Cause, work: () => Promise<R>): Promise<R> {
  const before = await lastEventSeq(tx)
  const result = await work()
  if ((await lastEventSeq(tx)) > before) await tx.update(events).set(cause).where(gt(events.seq, before))
  return result
}
