import type { RunQuery } from '../../port'
import type { CachedConnection } from './connection'
import type { LazyWriter } from './lazy-writer'

type CountRemoteCommits = () => number

const ONLY_READS = /^\s*select\b/i

/**
 * Reads on the writing connection while it is in no transaction, because its page cache stays valid after its own commits;
 * otherwise on a read-only connection.
 */
export class DatabaseReads {
  #ofReader: ReadSnapshot
  #ofWriter?: ReadSnapshot
  #isWriting = false

  constructor(
    private reader: CachedConnection,
    private writer: LazyWriter,
    /** Returns a number that changes with the commits of other processes. */
    private countRemoteCommits: CountRemoteCommits = () => 0,
  ) {
    this.#ofReader = new ReadSnapshot(reader, countRemoteCommits)
  }

  query: RunQuery = async (sql, params) => this.querySync(sql, params)

  querySync = (sql: string, params?: unknown[]): unknown[][] =>
    (ONLY_READS.test(sql) ? this.#chooseForSelect() : this.#ofReader).querySync(sql, params)

  /** Returns the number of the snapshot that a `select` sees now. */
  getSnapshot = (): number => this.#chooseForSelect().openLatest()

  #chooseForSelect(): ReadSnapshot {
    const connection = this.#isWriting ? undefined : this.writer.opened?.connection
    if (!connection) return this.#ofReader
    if (!this.#ofWriter) {
      this.#ofWriter = new ReadSnapshot(connection, this.countRemoteCommits)
      // From now on, most reads use the cache of the writing connection.
      this.end()
      this.reader.execute('pragma shrink_memory')
    }
    return this.#ofWriter
  }

  beginWrite() {
    this.#ofWriter?.end()
    this.#isWriting = true
  }

  /** Later reads see the write, if it was committed. */
  endWrite() {
    this.#isWriting = false
    this.end()
  }

  /** Ends the snapshots, so that the next read sees everything committed by then. */
  end() {
    this.#ofReader.end()
    this.#ofWriter?.end()
  }
}

/**
 * Lets the reads of one turn of the event loop share a snapshot, because locking the file for each took longer than
 * reading it. The snapshot ends with every commit, so that reads always see acknowledged writes.
 */
class ReadSnapshot {
  static #openedCount = 0
  #isOpen = false
  #openedAt = 0
  #number = 0

  constructor(
    private connection: CachedConnection,
    private countRemoteCommits: CountRemoteCommits,
  ) {}

  querySync(sql: string, params?: unknown[]): unknown[][] {
    this.openLatest()
    return this.connection.querySync(sql, params)
  }

  end = () => {
    if (!this.#isOpen) return
    this.#isOpen = false
    try {
      this.connection.querySync('commit')
    } catch {
      // A failed read has ended it already.
    }
  }

  /** Opens a snapshot of the latest state, unless it is open, and returns its number in this thread. */
  openLatest(): number {
    const commits = this.countRemoteCommits()
    if (this.#isOpen && this.#openedAt === commits) return this.#number
    this.end()
    this.connection.querySync('begin')
    this.#isOpen = true
    this.#openedAt = commits
    setImmediate(this.end)
    this.#number = ++ReadSnapshot.#openedCount
    return this.#number
  }
}
