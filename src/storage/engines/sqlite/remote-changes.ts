import type { CachedConnection } from './connection'
import type { ReadSnapshot } from './read-snapshot'

/**
 * Tells when another process has written to a database. SQLite's `data_version` of a connection changes with the commits
 * of all other connections (https://sqlite.org/pragma.html#pragma_data_version): that of the writer only with those of
 * other processes, that of the reader with all. The reader's costs little, because it has its locks anyway.
 */
export class RemoteChanges {
  #seenByReader?: number
  #version = 0

  constructor(
    private snapshot: ReadSnapshot,
    private writer: CachedConnection,
  ) {}

  /** Returns a number that differs from an earlier one when another process has written. */
  version(): number {
    try {
      if (this.snapshot.dataVersion() === this.#seenByReader) return this.#version
      this.#version = this.writer.querySync('pragma data_version')[0]![0] as number
      // The snapshot must not be older than what the writer has seen.
      this.snapshot.end()
      this.#seenByReader = this.snapshot.dataVersion()
    } catch {
      // The read that follows fails as well, and tells why.
    }
    return this.#version
  }
}
