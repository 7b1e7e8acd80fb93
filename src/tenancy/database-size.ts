import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { tenantMigrations } from '../../migrations'
import { readStoredBytes } from '../storage/engines/sqlite/stored-bytes'
import { databases, tenantFolder } from './databases'
import { locationOf } from './placement'
import { registry } from './registry'
import { tenants } from './tables'
import type { Tenant } from './tenants'

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

/**
 * Returns how many bytes a tenant's data takes. In a file that is quick, and counts indexes; in PostgreSQL, all rows of
 * the tenant are read, by a connection of its own, and indexes do not count.
 */
export async function measureStoredBytes({ tenant, db }: Tenant): Promise<number> {
  const entry = await registry.db.select().from(tenants).where(eq(tenants.id, tenant)).get()
  if (!entry?.home) return readStoredBytes(db)
  const { sumRowBytes } = await import('../storage/engines/postgres/stored-bytes')
  const copy = await databases.openTenantCopy(locationOf(entry), tenantMigrations)
  try {
    return await sumRowBytes(copy)
  } finally {
    await copy.close()
  }
}
