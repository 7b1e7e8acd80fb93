import type { CachedConnection } from './connection'
import type { WalSync } from './wal-sync'

/** A connection that writes, and what makes its log durable, unless SQLite does that itself. */
export type WriteAccess = { connection: CachedConnection; log?: WalSync }

/**
 * Opens what writes to a database with the first write. Most open databases are only read, and a connection takes a
 * quarter of a megabyte and half a millisecond, because each parses the schema.
 */
export class LazyWriter {
  #opening?: Promise<WriteAccess>
  #opened?: WriteAccess

  constructor(private connect: () => Promise<WriteAccess>) {}

  /** What was opened, or undefined when nothing was written. */
  get opened() {
    return this.#opened
  }

  get hasFailed() {
    return !!this.#opened && (this.#opened.connection.hasDiskFailed || !!this.#opened.log?.hasFailed)
  }

  /** Returns what was opened, or opens it. After a failure the next call tries again. */
  open(): Promise<WriteAccess> {
    this.#opening ??= this.connect().then(
      (opened) => {
        this.#opened = opened
        return opened
      },
      (error) => {
        this.#opening = undefined
        throw error
      },
    )
    return this.#opening
  }
}
