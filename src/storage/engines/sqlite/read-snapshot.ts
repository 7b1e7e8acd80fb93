import type { RunQuery } from '../../port'
import type { CachedConnection } from './connection'

/**
 * Reads of one turn of the event loop share a snapshot, because locking the file for each took longer than reading it.
 * It ends with every commit of this process, so that nobody misses what was acknowledged; what another process commits
 * is seen in the next turn.
 */
export class ReadSnapshot {
  #isOpen = false

  constructor(private connection: CachedConnection) {}

  query: RunQuery = async (sql, params) => {
    if (!this.#isOpen) this.#open()
    return this.connection.querySync(sql, params)
  }

  /** The next read sees what is committed by then. */
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
