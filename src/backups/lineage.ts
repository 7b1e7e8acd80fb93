import { eq } from 'drizzle-orm'
import { registry } from '../tenancy/registry'
import { tenants } from '../tenancy/tables'
import type { BackupChoice } from './backup-list'

/**
 * Returns what tells the backups of the present tenant of an id from those of an earlier one, which was deleted. Undefined
 * when there is no such tenant. Backups without identities are of versions that did not note them, and may be its own.
 */
export async function findOwnBackups(id: string): Promise<BackupChoice | undefined> {
  const entry = await registry.db.select().from(tenants).where(eq(tenants.id, id)).get()
  if (!entry) return
  const own = [entry.uid, ...entry.earlierUids]
  return ({ uids }) => !uids || uids.some((uid) => own.includes(uid))
}
