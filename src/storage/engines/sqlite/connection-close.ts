import { StorageFull } from '../../errors'
import type { CachedConnection } from './connection'
import { ignoreBusy } from './tenant-copy'

/**
 * Closes the connections, and leaves one complete file without a log. Without a writer SQLite does so itself, for what
 * another process may have written.
 */
export async function closeAndTruncateLog(reader: CachedConnection, writer?: CachedConnection) {
  reader.close()
  if (!writer) return
  try {
    await writer.truncateLog().catch(ignoreBusyOrFull)
  } finally {
    writer.close()
  }
}

/** Closes the connections. SQLite leaves one complete file where no other process has it open. */
export function closeConnections(reader: CachedConnection, writer?: CachedConnection) {
  reader.close()
  writer?.close()
}

/** On a full disk the log stays beside its file, and nothing is lost. */
export function ignoreBusyOrFull(error: unknown) {
  if (!(error instanceof StorageFull)) ignoreBusy(error)
}
