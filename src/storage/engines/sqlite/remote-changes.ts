import type { CachedConnection } from './connection'
import type { ReadSnapshot } from './read-snapshot'

/** The latest version of any database. A database that is opened again does not repeat one of its earlier versions. */
let latestVersion = 0

/**
 * Tells when another process has written to a database. SQLite's `data_version` of a connection changes with the commits
 * of all other connections (https://sqlite.org/pragma.html#pragma_data_version): that of the writer only with those of
 * other processes, that of the reader with all. The reader's costs little, because it has its locks anyway.
 */
export class RemoteChanges {
  #seenByReader?: number
  #seenByWriter?: number
  #version = ++latestVersion

  constructor(
    private snapshot: ReadSnapshot,
    private writer: CachedConnection,
  ) {}

  /** Returns a number that differs from an earlier one when another process has written. */
  version(): number {
    try {
      if (this.snapshot.dataVersion() !== this.#seenByReader) this.#check()
    } catch {
      // The read that follows fails as well, and tells why.
    }
    return this.#version
  }

  #check() {
    let [seenByWriter, seenByReader]: [number?, number?] = []
    // A commit between the two would be in the snapshot, but not in the version.
    do {
      seenByWriter = this.#readByWriter()
      this.snapshot.end()
      seenByReader = this.snapshot.dataVersion()
    } while (this.#readByWriter() !== seenByWriter)
    if (this.#seenByWriter !== undefined && this.#seenByWriter !== seenByWriter) this.#version = ++latestVersion
    this.#seenByWriter = seenByWriter
    this.#seenByReader = seenByReader
  }

  #readByWriter = () => this.writer.querySync('pragma data_version')[0]![0] as number
}
