import type { RunQuery } from '../../port'
import type { CachedConnection } from './connection'

/**
 * Lets the reads of one turn of the event loop share a snapshot, because locking the file for each took longer than
 * reading it. The snapshot ends with every commit of this process, so that reads always see acknowledged writes;
 * commits of other processes are seen in the next turn.
 */
export class ReadSnapshot {
  #isOpen = false

  constructor(private connection: CachedConnection) {}

  query: RunQuery = async (sql, params) => {
    if (!this.#isOpen) this.#open()
    return this.connection.querySync(sql, params)
  }

  /** Ends the snapshot, so that the next read sees everything committed by then. */
  end = () => {
    if (!this.#isOpen) return
    this.#isOpen = false
    try {
      this.connection.querySync('commit')
    } catch {
      // A failed read has ended it already.
    }
  }

  #open() {
    this.connection.querySync('begin')
    this.#isOpen = true
    setImmediate(this.end)
  }
}
