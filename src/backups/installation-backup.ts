import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { registryMigrations } from '../../migrations'
import { config } from '../config'
import { Problem } from '../core/problem'
import { copyDatabase } from '../tenancy/databases'
import { registryLocation } from '../tenancy/registry'
import { parseSecrets, readSecretsFile, replaceSecretsFile, secretsFile } from '../tenancy/secrets-file'
import { createStagedFolder } from '../tenancy/staged-folder'
import type { StoredBackup } from './backup-list'
import { openDecryption } from './decryption'
import type { BackupEncryption, BackupSecrets } from './encryption'
import { INSTALLATION_FOLDER } from './folder-name'
import { applyShippedLog, type LogRange } from './log/log-restore'
import { findCopyPlace, readLogState } from './log/log-state'
import { writePrivateFile } from './private-file'
import { tooNew } from './rows'
import { assertSound } from './staged-check'
import { readStoredFile } from './stored-file'
import type { BackupTarget } from './targets/backup-target'
import { type BackupControl, type MadeBackup, storeBackup, toStagedCopy } from './tenant-backup'

const SECRETS_NAME = 'secrets.json'

/**
 * Makes a backup of what tenants share: the registry, and the keys, which only an encrypted backup contains. Returns
 * undefined where the registry is in PostgreSQL, which has tools of its own.
 */
export async function backUpInstallation(
  target: BackupTarget,
  encryption: BackupEncryption | undefined,
  control: BackupControl = {},
): Promise<MadeBackup | undefined> {
  if (registryLocation.cluster) return
  using staged = createStagedFolder(0)
  const copy = async () => {
    const state = readLogState(INSTALLATION_FOLDER)
    const log = findCopyPlace(await copyDatabase(registryLocation, staged.file, { signal: control.signal }), state)
    return { ...toStagedCopy(staged.file), ...(log && { log }) }
  }
  const secretFiles = { [SECRETS_NAME]: JSON.stringify(readSecretsFile() ?? {}) }
  return await storeBackup({ copy, secretFiles, target, encryption, control })
}

/**
 * Restores the registry and, from an encrypted backup, the keys into a folder that has none yet. Without its keys,
 * `secrets.json` has to be put there first.
 * @throws 409 INSTALLATION_EXISTS, KEYS_NEEDED, BACKUP_DAMAGED or BACKUP_TOO_NEW
 * @throws 403 WRONG_BACKUP_KEY
 */
export async function restoreInstallation(
  backup: StoredBackup,
  secrets: BackupSecrets,
  range: LogRange,
): Promise<void> {
  const { target, folder, manifest } = backup
  const file = join(config.ATOLL_TENANTS, 'registry.db')
  if (registryLocation.cluster)
    throw new Problem(
      409,
      'INSTALLATION_EXISTS',
      'The registry is in PostgreSQL. Restore it with the tools of PostgreSQL.',
    )
  if (existsSync(file))
    throw new Problem(
      409,
      'INSTALLATION_EXISTS',
      `${config.ATOLL_TENANTS} has an installation already. Restore a single tenant, or choose an empty ATOLL_TENANTS.`,
    )
  if (manifest.schemaVersion > registryMigrations.sqlite.length) throw tooNew()
  const keysFile = manifest.files.find(({ name }) => name.startsWith(SECRETS_NAME))
  if (!keysFile && !existsSync(secretsFile))
    throw new Problem(
      409,
      'KEYS_NEEDED',
      `This backup is not encrypted, so it does not contain the keys. Put the secrets.json of its origin into ${config.ATOLL_TENANTS} first.`,
    )
  mkdirSync(config.ATOLL_TENANTS, { recursive: true, mode: 0o700 })
  using staged = createStagedFolder(manifest.files[0]!.content.bytes)
  const decrypt = await openDecryption(backup, secrets)
  await writePrivateFile(readStoredFile(target, folder, manifest.files[0]!, decrypt), staged.file)
  await assertSound(staged.file, manifest, backup.place)
  await applyShippedLog(backup, secrets, staged.file, range)
  if (keysFile && !existsSync(secretsFile)) {
    const text = await readText(readStoredFile(target, folder, keysFile, decrypt))
    replaceSecretsFile(parseSecrets(text, target.addressOf(`${folder}/${keysFile.name}`)))
  }
  renameSync(staged.file, file)
}

async function readText(content: AsyncIterable<Uint8Array>): Promise<string> {
  return Buffer.concat(await Array.fromAsync(content)).toString()
}
