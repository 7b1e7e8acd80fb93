import { open } from 'node:fs/promises'

const SYNC_BYTES = 32 << 20

/** Creates a file that is synchronized with the disk while it grows, so that the end has little left to synchronize. */
export async function createSyncedFile(path: string) {
  const file = await open(path, 'wx', 0o600)
  let unsynced = 0
  let syncing: Promise<void> | undefined
  let failure: { error: unknown } | undefined
  const syncInBackground = () =>
    file
      .datasync()
      .catch((error) => {
        failure = { error }
      })
      .finally(() => {
        syncing = undefined
      })
  return {
    async write(part: Uint8Array) {
      await file.writeFile(part)
      unsynced += part.byteLength
      if (unsynced < SYNC_BYTES || syncing) return
      unsynced = 0
      syncing = syncInBackground()
    },
    /** Returns when all of it is on the disk. */
    async sync() {
      await syncing
      if (failure) throw failure.error
      await file.sync()
    },
    async close() {
      await syncing
      await file.close()
    },
  }
}
