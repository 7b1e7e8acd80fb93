import { gt } from 'drizzle-orm'
import { lastEventSeq } from '../jobs/event-dispatcher'
import { events } from '../jobs/tables'
import type { Tx } from '../storage/port'
import { wrapWrite } from '../storage/write-wrapper'
import type { Tenant } from '../tenancy/tenants'

/** The maximum number of runs that cause each other: an event of this depth triggers no integration. */
export const MAX_RUN_DEPTH = 5

/** The integration whose run caused an event, and the number of runs that led to it. */
export type Cause = { cause: string; depth: number }

/** Returns the tenant with a `write` that marks every emitted event with its cause. */
export const withCause = <T extends Tenant>(tenant: T, cause: Cause): T => ({
  ...tenant,
  write: wrapWrite(tenant.write, (tx, work) => markEvents(tx, cause, work)),
})

/** Runs `work` and marks the events that it emitted. No other transaction emits events at the same time. */
export async function markEvents<R>(tx: Tx, cause: Cause, work: () => Promise<R>): Promise<R> {
  const before = await lastEventSeq(tx)
  const result = await work()
  if ((await lastEventSeq(tx)) > before) await tx.update(events).set(cause).where(gt(events.seq, before))
  return result
}
