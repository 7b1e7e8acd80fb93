import { tenantMigrations } from '../../migrations'
import { toIsoString } from '../core/clock'
import { splitLines } from '../core/lines'
import { Problem } from '../core/problem'
import { ensureSecrets, getKeyFingerprints } from '../tenancy/installation-keys'
import { prepareRestoredTenant, serveStagedDatabase } from '../tenancy/restored-tenants'
import { createStagedFolder, type StagedFolder } from '../tenancy/staged-folder'
import type { StoredBackup } from './backup-list'
import { holdContents } from './contents/content-hold'
import { restoreContents } from './contents/content-restore'
import { listContentsOfFile } from './contents/named-contents'
import { openDecryption } from './decryption'
import type { BackupSecrets } from './encryption'
import { applyShippedLog } from './log/log-restore'
import type { Manifest } from './manifest'
import { writePrivateFile } from './private-file'
import { createDatabaseOfRows, tooNew } from './rows'
import type { RestoredTenant } from './shapes'
import { assertSound } from './staged-check'
import { prepareStagedDatabase } from './staged-database'
import { readStoredFile } from './stored-file'
import type { BackupControl } from './tenant-backup'

export type RestoreOptions = {
  /** The id of the restored tenant (default: that of the backup). */
  as?: string
  /** Whether the data of an existing tenant may be replaced. */
  mayReplace?: boolean
  /** Until when the log after the backup is restored, too (ms since 1970); undefined for the backup alone. */
  logUntil?: number
  /** Whether a gap in the log may end the restore before. */
  untilGap?: boolean
  /** Whether to leave out secrets that cannot be decrypted with the keys of this installation. */
  dropSecrets?: boolean
  secrets: BackupSecrets
}

/**
 * Restores a tenant from a backup. Its data are complete and checked before they are served; until then nothing
 * changes. A copy under another id gets neither hosts nor sessions.
 * @throws 409 BACKUP_DAMAGED, BACKUP_TOO_NEW, OTHER_KEYS or TENANT_EXISTS
 * @throws 403 WRONG_BACKUP_KEY, 507 STORAGE_FULL
 */
export async function restoreTenant(
  backup: StoredBackup,
  { as, mayReplace = false, dropSecrets = false, secrets, logUntil, untilGap }: RestoreOptions,
  control: BackupControl = {},
): Promise<RestoredTenant> {
  const startedAt = performance.now()
  const { manifest, place } = backup
  if (manifest.schemaVersion > tenantMigrations.sqlite.length) throw tooNew()
  const restored = await prepareRestoredTenant(as ?? manifest.tenant, mayReplace)
  await ensureSecrets()
  if (!dropSecrets) await assertKeys(manifest)
  using staged = createStagedFolder(manifest.files[0]!.content.bytes)
  // Contents that the tenant has already are not read from the backup, so they must not be removed until it is replaced.
  await using _hold = restored.before && (await holdContents(restored.before).catch(() => undefined))
  await stageContent(backup, secrets, staged, control)
  await assertSound(staged.file, manifest, place)
  const until =
    logUntil !== undefined && manifest.content === 'sqlite'
      ? await applyShippedLog(backup, secrets, staged.file, { until: logUntil, untilGap })
      : undefined
  control.onProgress?.('preparing')
  const lostSecrets = await prepareStagedDatabase(staged, manifest.tenant, restored, {
    secrets: dropSecrets ? 'dropped' : 'kept',
  })
  const contents = await listContentsOfFile(staged.file)
  const files = await restoreContents(backup, secrets, { tenant: restored.id, contents, staged, control })
  const { created } = manifest
  control.signal?.throwIfAborted()
  const { trash, isHeld } = await serveStagedDatabase(restored, staged, {
    event: 'tenant-restored',
    from: manifest.tenant,
    uids: manifest.tenant === restored.id ? manifest.uids : [],
    metadata: { place, created },
  })
  const rows = Object.values(manifest.rows).reduce((sum, count) => sum + count, 0)
  const ms = Math.round(performance.now() - startedAt)
  const logged = until === undefined ? {} : { until: toIsoString(until) }
  return {
    tenant: restored.id,
    place,
    created,
    ...logged,
    rows,
    files,
    lostSecrets,
    ms,
    ...(trash && { trash }),
    ...(isHeld && { outgoingHeld: true }),
  }
}

/** @throws 409 OTHER_KEYS when the secrets in a backup cannot be decrypted here */
async function assertKeys({ keys, rows }: Manifest) {
  const known = await getKeyFingerprints()
  if (!rows.sealed || keys.some((key) => known.includes(key))) return
  throw new Problem(
    409,
    'OTHER_KEYS',
    'The secrets in this backup are encrypted with keys that this installation does not have. Restore the secrets.json of its origin first, or leave them out (--drop-secrets).',
  )
}

async function stageContent(
  backup: StoredBackup,
  secrets: BackupSecrets,
  staged: StagedFolder,
  control: BackupControl,
) {
  const { target, folder, manifest } = backup
  const file = manifest.files[0]!
  const decrypt = await openDecryption(backup, secrets)
  const content = reportProgress(readStoredFile(target, folder, file, decrypt), file.content.bytes, control)
  if (manifest.content === 'rows') {
    const { rows } = await createDatabaseOfRows(splitLines(content), staged.locate(''))
    const expected = Object.values(manifest.rows).reduce((sum, count) => sum + count, 0)
    if (rows !== expected)
      throw new Problem(
        409,
        'BACKUP_DAMAGED',
        `The backup ${backup.place} is damaged: it has ${rows} rows, and its manifest says ${expected}. Use another backup.`,
      )
  } else await writePrivateFile(content, staged.file)
}

async function* reportProgress(content: AsyncIterable<Uint8Array>, total: number, control: BackupControl) {
  let done = 0
  for await (const chunk of content) {
    control.signal?.throwIfAborted()
    yield chunk
    done += chunk.length
    control.onProgress?.('restoring', total ? done / total : 1)
  }
}
