import type { LazyWriter } from './lazy-writer'
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
  /** Undefined without a writer: then this process has written nothing. */
  #seenByWriter?: number
  #version = ++latestVersion

  constructor(
    private snapshot: ReadSnapshot,
    private writer: LazyWriter,
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

  /** Prepares for the first write of this process. Call it between the opening of the writer and that write. */
  followWriter() {
    this.#check()
  }

  #check() {
    let [seenByWriter, seenByReader]: [number?, number?] = []
    // A commit between the two would be in the snapshot, but not in the version.
    do {
      seenByWriter = this.#readByWriter()
      this.snapshot.end()
      seenByReader = this.snapshot.dataVersion()
    } while (this.#readByWriter() !== seenByWriter)
    const hasChanged =
      this.#seenByWriter === undefined ? seenByReader !== this.#seenByReader : seenByWriter !== this.#seenByWriter
    if (hasChanged) this.#version = ++latestVersion
    this.#seenByWriter = seenByWriter
    this.#seenByReader = seenByReader
  }

  #readByWriter = () => this.writer.opened?.connection.querySync('pragma data_version')[0]?.[0] as number | undefined
}
