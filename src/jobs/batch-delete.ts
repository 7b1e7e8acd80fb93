import { and, inArray, type SQL } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Tenant } from '../tenancy/tenants'
import type { Lease } from './with-lease'

const ROWS_PER_BATCH = 500
const BATCH_PAUSE_MS = 20 // between batches, so that other writes can run

/**
 * Deletes the rows that match `where`, batch by batch. `key` is a column that identifies a row.
 * @throws LeaseLost when the lease is lost
 */
export async function deleteInBatches(
  { write, signal }: Tenant & Lease,
  table: SQLiteTable,
  key: SQLiteColumn,
  where: SQL | undefined,
) {
  for (;;) {
    signal.throwIfAborted()
    const deleted = await write((tx) => {
      const batch = tx.select({ key }).from(table).where(where).limit(ROWS_PER_BATCH)
      return tx
        .delete(table)
        .where(and(where, inArray(key, batch)))
        .returning({ key })
    })
    if (deleted.length < ROWS_PER_BATCH) return
    await Bun.sleep(BATCH_PAUSE_MS)
  }
}
