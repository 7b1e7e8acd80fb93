import { and, eq, lte } from 'drizzle-orm'
import { tenantMigrations } from '../../migrations'
import { HOUR_MS, now, toIsoString } from '../core/clock'
import type { TenantCopyConnection } from '../storage/port'
import { TableRows } from '../storage/table-rows'
import { assertDatabaseConfigured } from './buckets'
import { databases, tryClaim } from './databases'
import { locationOf } from './placement'
import { registry } from './registry'
import { remains, tenants } from './tables'

/** What was deleted from a bucket: the number of tenants and of rows. */
export type PurgeResult = { home: string; tenants: number; rows: number }

/**
 * Deletes the rows of tenants that were deleted, or moved elsewhere, at least so many hours ago. Returns the numbers by
 * bucket.
 * @throws 400 NO_DATABASE without a configured database
 */
export async function purgeRemains(hours: number): Promise<PurgeResult[]> {
  assertDatabaseConfigured()
  const due = await registry.db
    .select()
    .from(remains)
    .where(lte(remains.since, toIsoString(now() - hours * HOUR_MS)))
    .orderBy(remains.home)
  const purged = new Map<string, PurgeResult>()
  for (const { uid, home } of due) {
    if (home.includes('://')) continue // contents in a store
    // A tenant that is being moved may be moving to this bucket.
    await using claimed = await tryClaim(`move ${uid}`)
    if (!claimed) continue
    const { rows, tenants, ...before } = purged.get(home) ?? { home, tenants: 0, rows: 0 }
    purged.set(home, { ...before, tenants: tenants + 1, rows: rows + (await deleteTenantRows(uid, home)) })
    await registry.write((tx) => tx.delete(remains).where(and(eq(remains.uid, uid), eq(remains.home, home))))
  }
  return [...purged.values()]
}

async function deleteTenantRows(uid: string, home: string): Promise<number> {
  const tenant = await registry.db.select().from(tenants).where(eq(tenants.uid, uid)).get()
  if (tenant?.home === home) return 0
  const tenantCopy = await databases.openTenantCopy(locationOf({ id: '', uid, home, made: null }), tenantMigrations)
  try {
    return await deleteAllRows(tenantCopy)
  } finally {
    await tenantCopy.close()
  }
}

/** Rows that refer to others go first. The engine's mark that the tenant is not served there stays. */
async function deleteAllRows(tenantCopy: TenantCopyConnection): Promise<number> {
  let removed = 0
  for (const table of tenantCopy.tables.toReversed()) removed += await new TableRows(table).clear(tenantCopy)
  return removed
}
