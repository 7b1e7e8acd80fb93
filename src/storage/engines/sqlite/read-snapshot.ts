import type { RunQuery } from '../../port'
import type { CachedConnection } from './connection'

/**
 * Lets the reads of one turn of the event loop share a snapshot, because locking the file for each took longer than
 * reading it. The snapshot ends with every commit of this process, so that reads always see acknowledged writes;
 * commits of other processes are seen in the next turn, or when the request after them comes in.
 */
export class ReadSnapshot {
  #isOpen = false
  #dataVersion?: number
  #openedIn = 0

  constructor(
    private connection: CachedConnection,
    /** Returns the number of the latest request. A snapshot that is older may lack what its sender knows. */
    private latestRequest: () => number = () => 0,
  ) {}

  query: RunQuery = async (sql, params) => {
    this.#openLatest()
    return this.connection.querySync(sql, params)
  }

  /** Returns a number that changes with every commit that is not the connection's own. */
  dataVersion(): number {
    this.#openLatest()
    this.#dataVersion ??= this.connection.querySync('pragma data_version')[0]![0] as number
    return this.#dataVersion
  }

  /** Ends the snapshot, so that the next read sees everything committed by then. */
  end = () => {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#dataVersion = undefined
    try {
      this.connection.querySync('commit')
    } catch {
      // A failed read has ended it already.
    }
  }

  #openLatest() {
    const request = this.latestRequest()
    if (this.#isOpen && this.#openedIn === request) return
    this.end()
    this.connection.querySync('begin')
    this.#isOpen = true
    this.#openedIn = request
    setImmediate(this.end)
  }
}
