import { sql } from 'drizzle-orm'
import { config } from '../config'
import { Problem } from '../core/problem'
import { registry } from '../tenancy/registry'
import { tenantBackups } from '../tenancy/tables'
import { listBackups } from './backup-list'
import type { ListedBackup } from './shapes'
import { openTarget } from './targets'
import type { BackupTarget } from './targets/backup-target'

/** Returns the target of the settings. @throws 400 NO_BACKUP_TARGET when there is none */
export function requireConfiguredTarget(): string {
  if (config.ATOLL_BACKUP_TO) return config.ATOLL_BACKUP_TO
  const message = 'No place for backups is configured. Set ATOLL_BACKUP_TO to a folder, or to s3://bucket/prefix.'
  throw new Problem(400, 'NO_BACKUP_TARGET', message)
}

/**
 * Returns the backups of a tenant in the target of the settings, latest first.
 * @throws 400 NO_BACKUP_TARGET
 * @throws 502 BACKUP_TARGET_FAILED when the target cannot be read
 */
export async function listTenantBackups(tenant: string): Promise<ListedBackup[]> {
  const target = openTarget(requireConfiguredTarget())
  const isReadable = await target.probe().then(
    () => true,
    async (error) => {
      if (await isUnused(target, error)) return false
      throw error
    },
  )
  const backups = isReadable ? await listBackups(target, tenant) : []
  return backups.map(({ folder, place, manifest }) => ({
    name: folder.slice(folder.lastIndexOf('/') + 1),
    place,
    created: manifest.created,
    bytes: manifest.files.reduce((sum, { bytes }) => sum + bytes, 0),
    version: manifest.version,
    schemaVersion: manifest.schemaVersion,
    rows: Object.values(manifest.rows).reduce((sum, count) => sum + count, 0),
    encrypted: manifest.encryption !== 'none',
  }))
}

/** Tells whether a target that cannot be read is a folder that the first backup will create. */
async function isUnused(target: BackupTarget, error: Problem): Promise<boolean> {
  if ((error.cause as { code?: string } | undefined)?.code !== 'ENOENT') return false
  const folder = target.addressOf('')
  const isPlacedThere = sql`substr(${tenantBackups.place}, 1, ${folder.length}) = ${folder}`
  return !(await registry.db.select({ tenant: tenantBackups.tenant }).from(tenantBackups).where(isPlacedThere).get())
}
