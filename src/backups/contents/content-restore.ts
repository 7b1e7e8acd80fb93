import type { StoredBackup } from '../backup-list'
import { openDecryption } from '../decryption'
import { type BackupSecrets, createDecryption } from '../encryption'
import { readStoredFile } from '../stored-file'
import { openTarget } from '../targets'
import type { BackupTarget } from '../targets/backup-target'
import { CONTENTS_FOLDER, readListing } from './content-list'
import { type ContentOrder, limitBytes, type PlacedContents, placeContents } from './content-placement'
import { type ContentSeal, parseContentSeal, SEAL_FILE_NAME, toStoredName } from './content-seal'

/**
 * Brings contents of a backup to a tenant that is being made. One that is missing or damaged does not keep the others
 * from being restored.
 * @throws 502 BACKUP_TARGET_FAILED, 507 STORAGE_FULL
 */
export async function restoreContents(
  backup: StoredBackup,
  secrets: BackupSecrets,
  order: ContentOrder,
): Promise<PlacedContents> {
  if (!order.contents.length) return { count: 0, missing: [] }
  const [names, seal] = [await readListing(backup), await readSeal(backup, secrets)]
  const decrypt = seal && (await createDecryption({ identities: [seal.identity] }, async () => []))
  const source = findContents(backup)
  return placeContents(order, async ({ sha256, size }) => {
    const name = toStoredName(sha256, seal)
    const stored = names.has(name) ? await source.target.read(`${source.folder}${name}`) : undefined
    if (!stored) return
    return limitBytes(decrypt ? await decrypt(stored) : stored, size)
  })
}

/** A backup that is named by its own address has its contents beside its folder. */
function findContents({ target, folder, place }: StoredBackup): { target: BackupTarget; folder: string } {
  if (folder) return { target, folder: `${folder.slice(0, folder.lastIndexOf('/') + 1)}${CONTENTS_FOLDER}/` }
  return { target: openTarget(place.replace(/\/+[^/]+\/*$/, '')), folder: `${CONTENTS_FOLDER}/` }
}

async function readSeal(backup: StoredBackup, secrets: BackupSecrets): Promise<ContentSeal | undefined> {
  const file = backup.manifest.files.find(({ name }) => name.startsWith(SEAL_FILE_NAME))
  if (!file) return
  const content = readStoredFile(backup.target, backup.folder, file, await openDecryption(backup, secrets))
  return parseContentSeal(Buffer.concat(await Array.fromAsync(content)).toString())
}
