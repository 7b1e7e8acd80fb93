import { StorageFull } from '../../errors'
import type { CachedConnection } from './connection'
import { ignoreBusy } from './tenant-copy'

/** Closes the connections, and leaves one complete file without a log. */
export async function closeAndTruncateLog(writer: CachedConnection, reader: CachedConnection) {
  reader.close()
  try {
    await writer.truncateLog().catch(ignoreBusyOrFull)
  } finally {
    writer.close()
  }
}

/** Closes the connections. SQLite leaves one complete file where no other process has it open. */
export function closeConnections(writer: CachedConnection, reader: CachedConnection) {
  reader.close()
  writer.close()
}

/** On a full disk the log stays beside its file, and nothing is lost. */
export function ignoreBusyOrFull(error: unknown) {
  if (!(error instanceof StorageFull)) ignoreBusy(error)
}
