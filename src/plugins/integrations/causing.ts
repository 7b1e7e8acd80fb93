import { gt } from 'drizzle-orm'
import { newestEvent } from '../../jobs/fanout'
import { events } from '../../jobs/tables'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'

/** How many runs of integrations may follow from each other: an event that so many led to is heard by none. */
export const DEEPEST = 5

/** Of which integration's run something comes, and how many runs led to it. */
export type Cause = { cause: string; depth: number }

/** The same tenant, whose events are marked by what caused them, whoever tells them. */
export const causing = <T extends Tenant>(tenant: T, cause: Cause): T => ({
  ...tenant,
  write: (work, manner) => tenant.write((tx) => marking(tx, cause, () => work(tx)), manner),
})

/** Marks the events of a transaction's part. Nobody else writes meanwhile. */
export async function marking<R>(tx: Tx, cause: Cause, work: () => Promise<R>): Promise<R> {
  const before = await newestEvent(tx)
  const result = await work()
  if ((await newestEvent(tx)) > before) await tx.update(events).set(cause).where(gt(events.seq, before))
  return result
}
