import { joinPath, type StoredBackup } from './backup-list'
import { type BackupSecrets, createDecryption, KEY_FILE_NAME } from './encryption'

/** Returns what decrypts the files of a backup; undefined for one that is not encrypted. */
export async function openDecryption({ target, folder, manifest }: StoredBackup, secrets: BackupSecrets) {
  if (manifest.encryption === 'none') return
  return createDecryption(secrets, async () => {
    const keyFile = await target.read(joinPath(folder, KEY_FILE_NAME))
    return keyFile ? [await new Response(keyFile).bytes()] : []
  })
}
