import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { tenantFolder } from './databases'

/** Returns the size of a tenant's database file with its log, in bytes; null for a tenant in PostgreSQL. */
export async function measureDatabase({ id, home }: { id: string; home?: string }): Promise<number | null> {
  if (home) return null
  const sizes = ['data.db', 'data.db-wal'].map(async (name) => {
    // The log is there only while the tenant is in use.
    const found = await stat(join(tenantFolder(id), name)).catch(() => undefined)
    return found?.size ?? 0
  })
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}
