import { config } from '../config'
import { Problem } from '../core/problem'
import { listBackups } from './backup-list'
import type { ListedBackup } from './shapes'
import { openTarget } from './targets'

/** Returns the target of the settings. @throws 400 NO_BACKUP_TARGET when there is none */
export function requireConfiguredTarget(): string {
  if (config.ATOLL_BACKUP_TO) return config.ATOLL_BACKUP_TO
  const message = 'No place for backups is configured. Set ATOLL_BACKUP_TO to a folder, or to s3://bucket/prefix.'
  throw new Problem(400, 'NO_BACKUP_TARGET', message)
}

/** Returns the backups of a tenant in the target of the settings, latest first. @throws 400 NO_BACKUP_TARGET */
export async function listTenantBackups(tenant: string): Promise<ListedBackup[]> {
  const backups = await listBackups(openTarget(requireConfiguredTarget()), tenant)
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
