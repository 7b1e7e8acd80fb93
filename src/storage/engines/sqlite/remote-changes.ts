import type { LazyWriter } from './lazy-writer'
import type { ReadSnapshot } from './read-snapshot'

/** No number is given twice, also when a database is closed and opened again. */
let latestVersion = 0

/**
 * Tells when another process has written to a database. SQLite's `data_version` of a connection changes with the commits
 * of all other connections (https://sqlite.org/pragma.html#pragma_data_version): that of the writer only with those of
 * other processes, that of the reader with all. The reader's costs little, because it has its locks anyway.
 */
export class RemoteChanges {
  #seenByReader?: number
  #seenByWriter?: unknown
  #version = ++latestVersion

  constructor(
    private snapshot: ReadSnapshot,
    private writer: LazyWriter,
  ) {}

  /** Returns a number that differs from an earlier one when another process has written. */
  version(): number {
    try {
      if (this.snapshot.dataVersion() === this.#seenByReader) return this.#version
      const seenByWriter = this.#readWriter()
      // Without a writer, this process has written nothing.
      if (!this.writer.opened || seenByWriter !== this.#seenByWriter) this.#version = ++latestVersion
      this.#seenByWriter = seenByWriter
      // The snapshot must not be older than what the writer has seen.
      this.snapshot.end()
      this.#seenByReader = this.snapshot.dataVersion()
    } catch {
      // The read that follows fails as well, and tells why.
    }
    return this.#version
  }

  /** Prepares for the first write of this process. Call it between the opening of the writer and that write. */
  followWriter() {
    this.#seenByWriter = this.#readWriter()
    this.snapshot.end()
    const seenByReader = this.snapshot.dataVersion()
    if (seenByReader !== this.#seenByReader) this.#version = ++latestVersion
    this.#seenByReader = seenByReader
  }

  #readWriter = () => this.writer.opened?.connection.querySync('pragma data_version').at(0)?.at(0)
}
