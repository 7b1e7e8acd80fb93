import type { RunQuery } from '../../port'
import type { CachedConnection } from './connection'

/**
 * Lets the reads of one turn of the event loop share a snapshot, because locking the file for each took longer than
 * reading it. The snapshot ends with every commit, so that reads always see acknowledged writes.
 */
export class ReadSnapshot {
  #isOpen = false
  #openedAt = 0

  constructor(
    private connection: CachedConnection,
    /** Returns a number that changes with the commits of other processes. */
    private countRemoteCommits: () => number = () => 0,
  ) {}

  query: RunQuery = async (sql, params) => this.querySync(sql, params)

  querySync = (sql: string, params?: unknown[]): unknown[][] => {
    this.#openLatest()
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

  #openLatest() {
    const commits = this.countRemoteCommits()
    if (this.#isOpen && this.#openedAt === commits) return
    this.end()
    this.connection.querySync('begin')
    this.#isOpen = true
    this.#openedAt = commits
    setImmediate(this.end)
  }
}
