import { and, eq, lt } from 'drizzle-orm'
import { DAY_MS, now, toIsoString } from '../core/clock'
import { deleteInBatches } from '../jobs/batch-delete'
import type { Lease } from '../jobs/with-lease'
import type { Db, Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { dailyUse } from './tables'

const RETENTION_DAYS = 31

const dayOf = (time: number) => toIsoString(time).slice(0, 10)

/** Adds to what a tenant has used today (UTC), in the transaction that records the use. */
export const addDailyUse = (tx: Tx, kind: string, amount: number) =>
  tx.query(
    `insert into daily_use (day, kind, amount) values (?, ?, ?)
     on conflict ("day", "kind") do update set amount = daily_use.amount + excluded.amount`,
    [dayOf(now()), kind, amount],
  )

/** Returns what a tenant has used today (UTC). */
export async function readDailyUse({ db }: { db: Pick<Db, 'select'> }, kind: string): Promise<number> {
  const isOfToday = and(eq(dailyUse.day, dayOf(now())), eq(dailyUse.kind, kind))
  return (await db.select().from(dailyUse).where(isOfToday).get())?.amount ?? 0
}

/** Removes the use of days that are more than a month ago. */
export const removeOldUse = (tenant: Tenant & Lease) =>
  deleteInBatches(tenant, dailyUse, dailyUse.day, lt(dailyUse.day, dayOf(now() - RETENTION_DAYS * DAY_MS)))
