import { and, inArray, type SQL } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Tenant } from '../tenancy/tenants'
import type { Lease } from './holding'

const SLICE = 500 // rows
const PAUSE = 20 // ms between slices, for those who wait to write

/** Removes the rows of which `where` holds, slice by slice; `key` is what tells one of those from another. */
export async function removeInSlices(
  { write, signal }: Tenant & Lease,
  table: SQLiteTable,
  key: SQLiteColumn,
  where: SQL | undefined,
) {
  for (;;) {
    signal.throwIfAborted()
    const gone = await write((tx) => {
      const slice = tx.select({ key }).from(table).where(where).limit(SLICE)
      return tx
        .delete(table)
        .where(and(where, inArray(key, slice)))
        .returning({ key })
    })
    if (gone.length < SLICE) return
    await Bun.sleep(PAUSE)
  }
}
