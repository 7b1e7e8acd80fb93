import { and, eq, lte } from 'drizzle-orm'
import { tenantMigrations } from '../../migrations'
import { iso, now } from '../core/clock'
import type { Bulk } from '../storage/port'
import { Rows } from '../storage/rows'
import { requireDatabase } from './buckets'
import { placeOf } from './homes'
import { registry } from './registry'
import { claim, storage } from './storage'
import { remains, tenants } from './tables'

/** What was removed from a bucket: of how many tenants, and how many rows. */
export type Purged = { home: string; tenants: number; rows: number }

/** Removes the rows of tenants that were deleted, or moved elsewhere, at least so many hours ago. */
export async function purge(hours: number): Promise<Purged[]> {
  requireDatabase()
  const due = await registry.db
    .select()
    .from(remains)
    .where(lte(remains.since, iso(now() - hours * 3_600_000)))
    .orderBy(remains.home)
  const purged = new Map<string, Purged>()
  for (const { uid, home } of due) {
    // Who is being moved now may go there.
    await using claimed = await claim(`move ${uid}`)
    if (!claimed) continue
    const { rows, tenants, ...before } = purged.get(home) ?? { home, tenants: 0, rows: 0 }
    purged.set(home, { ...before, tenants: tenants + 1, rows: rows + (await removeRows(uid, home)) })
    await registry.write((tx) => tx.delete(remains).where(and(eq(remains.uid, uid), eq(remains.home, home))))
  }
  return [...purged.values()]
}

async function removeRows(uid: string, home: string): Promise<number> {
  const tenant = await registry.db.select().from(tenants).where(eq(tenants.uid, uid)).get()
  if (tenant?.home === home) return 0
  const bulk = await storage.bulk(placeOf({ id: '', uid, home, made: null }), tenantMigrations)
  try {
    return await clear(bulk)
  } finally {
    await bulk.close()
  }
}

/** Those that refer to others go first. What says that nobody is served there stays. */
async function clear(bulk: Bulk): Promise<number> {
  let removed = 0
  for (const table of bulk.tables.toReversed()) removed += await new Rows(table).clear(bulk)
  return removed
}
