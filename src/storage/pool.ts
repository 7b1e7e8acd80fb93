import { logError } from '../core/log'
import { isTraceRecorded, runInSpan } from '../core/trace'
import { DatabaseSlots } from './database-slots'
import {
  databaseStatistics,
  describeStatement,
  engineOf,
  operationOf,
  timeStatements,
  timeStatementsAtOnce,
} from './database-statistics'
import { createDb, hasNul } from './db'
import { Busy } from './errors'
import { GroupCommitWriter } from './group-commit'
import { needsSlot, type OpenDatabase, type PoolEntry, toPoolKey } from './pool-entry'
import type {
  DatabaseLocation,
  Db,
  Engine,
  Migrations,
  RunQuery,
  RunQueryAtOnce,
  Store,
  Tx,
  WriteOptions,
} from './port'
import { runWork } from './unit-of-work'

/** What the owner of some data knows about them. */
export type StoreOptions = {
  /** Returns the error to throw for a failed use, which may add what is known about the tenant. */
  translate?(error: unknown): Promise<unknown>
  /** Returns the reads of another place if the data were moved there. Receives a translated error of a read. */
  findMovedReads?(error: unknown): Promise<Db | undefined>
}
/** What is done after a failed use, which may repeat the work in another way or throw an error. */
type Recover<Work, T> = (error: unknown, work: Work) => Promise<T>
type ReadWork = (opened: Pick<OpenDatabase, 'read'>) => Promise<unknown[][]>

const IDLE_CHECK_INTERVAL_MS = 10_000

/**
 * Opens databases on first use. Idle ones release their memory, and where too many are open, the least recently used
 * are closed.
 */
export class DatabasePool {
  /** The least recently used first. */
  #entries = new Map<string, PoolEntry>()
  /** The last of these. */
  #latest?: PoolEntry
  /** The number of entries that are not pinned. */
  #evictableCount = 0
  #uses = 0
  #closing = new Set<Promise<void>>()
  #isClosed = false
  #closeListener?: (place: DatabaseLocation) => void | Promise<void>
  #slots: DatabaseSlots
  #idleTimer?: ReturnType<typeof setInterval>

  constructor(
    private engine: Engine,
    /** `slowAfter`: statements that take longer (ms) are logged (default: none). */
    private limits: { openCount: number; deadline: number; slowAfter?: number },
  ) {
    this.#slots = new DatabaseSlots(limits.openCount, limits.deadline)
  }

  /**
   * Returns a store that opens its database on first use, and again after it was closed. Reads of data that were moved
   * are repeated where the data are now.
   */
  getStore(place: DatabaseLocation, migrations: Migrations, options: StoreOptions = {}): Store {
    const { translate = async (error) => error, findMovedReads } = options
    const { slowAfter = 0 } = this.limits
    const key = toPoolKey(place)
    const use = <T, Work extends (opened: OpenDatabase) => Promise<T>>(work: Work, recover: Recover<Work, T>) =>
      this.#use(this.#entries.get(key) ?? this.#addEntry(key, place, migrations), work, recover)
    const repeatMoved: Recover<ReadWork, unknown[][]> = async (error, work) => {
      const translated = await translate(error)
      const moved = await findMovedReads?.(translated)
      if (!moved) throw translated
      return work({ read: moved.query })
    }
    const failWrite = async (error: unknown): Promise<never> => {
      throw await translate(error)
    }
    const runTraced = <T>(operation: string, sql: string | undefined, work: () => Promise<T>) =>
      runInSpan(operation, 'client', () => describeStatement(place, operation, sql), work)
    const runRead: RunQuery = (sql, params) => use(({ read }) => read(sql, params), repeatMoved)
    const query: RunQuery = (sql, params) =>
      isTraceRecorded() ? runTraced(operationOf(sql), sql, () => runRead(sql, params)) : runRead(sql, params)
    const queryAtOnce: RunQueryAtOnce = (sql, params) =>
      isTraceRecorded() || params.some(hasNul)
        ? undefined
        : this.#askAtOnce(key, ({ readAtOnce }) => readAtOnce?.(sql, params))
    const read: Db = {
      ...createDb(query),
      ...(engineOf(place) === 'sqlite' && { queryAtOnce }),
      getSnapshot: () => this.#askAtOnce(key, ({ database }) => database.getSnapshot?.()),
      vectorSearch: this.engine.vectorSearch?.(place) ?? 'javascript',
      wordIndex: this.engine.wordIndex?.(place) ?? 'gin',
    }
    return {
      db: read,
      remoteVersion: () => this.engine.remoteVersion?.(place) ?? 0,
      write: <T>(work: (tx: Tx) => Promise<T>, options?: WriteOptions) => {
        const run = ({ writer }: OpenDatabase) => runWork({ place, writer, read, slowAfter }, work, options)
        return runTraced('TRANSACTION', undefined, () => use<T, typeof run>(run, failWrite))
      },
    }
  }

  /** The number of open databases, without pinned ones. */
  get openCount() {
    return this.#evictableCount
  }

  isOpen(place: DatabaseLocation): boolean {
    return !!this.#entries.get(toPoolKey(place))?.opened
  }

  /** Closes a database as soon as it is idle. The next use opens whatever is at its place then. */
  async release(place: DatabaseLocation) {
    const entry = this.#entries.get(toPoolKey(place))
    if (!entry) return
    const closing = this.#closeEntry(entry)
    if (entry.users) closing.catch(logCloseFailure)
    else await closing
  }

  /**
   * Sets what is told of each database that begins to be closed, of which nothing has to stay in memory then. It is
   * closed once the listener is done.
   */
  onClose(listener: (place: DatabaseLocation) => void | Promise<void>) {
    this.#closeListener = listener
  }

  /** Opens all data of a place for copying. The caller closes it. */
  openTenantCopy(place: DatabaseLocation, migrations: Migrations) {
    return this.engine.openTenantCopy(place, migrations)
  }

  /** Returns the schema version of existing data, without bringing them up to date. */
  readSchemaVersion(place: DatabaseLocation): Promise<number> {
    return this.engine.readSchemaVersion(place)
  }

  /** Stops serving the data of a place. Nothing is removed. */
  async retire(place: DatabaseLocation, migrations: Migrations) {
    await this.engine.retire?.(place, migrations)
    await this.release(place)
  }

  /** Releases the memory of databases that were not used since the last check, once. */
  releaseIdleMemory() {
    for (const entry of this.#entries.values()) {
      if (entry.users || entry.useAtRelease === entry.lastUse) continue
      if (entry.useAtCheck === entry.lastUse) {
        entry.opened?.database.releaseMemory?.()
        entry.useAtRelease = entry.lastUse
      }
      entry.useAtCheck = entry.lastUse
    }
  }

  /** Closes all databases; one that is in use is closed as soon as it is idle. Later uses fail with 503 BUSY. */
  async close() {
    this.#isClosed = true
    clearInterval(this.#idleTimer)
    for (const entry of this.#entries.values()) this.#closeEntry(entry).catch(logCloseFailure)
    while (this.#closing.size) {
      await Promise.allSettled(this.#closing)
      await Bun.sleep(1)
    }
    await this.engine.close()
  }

  /** Runs work with an open database, which is not closed meanwhile. */
  async #use<T, Work extends (opened: OpenDatabase) => Promise<T>>(
    entry: PoolEntry,
    work: Work,
    recover: Recover<Work, T>,
  ): Promise<T> {
    entry.users++
    this.#noteUse(entry)
    try {
      return await work(entry.opened ?? (await entry.ready))
    } catch (error) {
      if (entry.opened?.database.isBroken?.()) this.#reopen(entry)
      return await recover(error, work)
    } finally {
      entry.users--
      if (!entry.users) entry.onIdle?.()
      this.#closeLeastUsed()
    }
  }

  #noteUse(entry: PoolEntry) {
    entry.lastUse = ++this.#uses
    if (entry === this.#latest) return
    this.#latest = entry
    this.#entries.delete(entry.key)
    this.#entries.set(entry.key, entry)
  }

  /**
   * Returns what an open database says at once; it cannot be closed meanwhile, because nothing else runs. What fails is left to a
   * read that says why.
   */
  #askAtOnce<T>(key: string, ask: (opened: OpenDatabase) => T): T | undefined {
    const entry = this.#entries.get(key)
    if (!entry?.opened) return
    this.#noteUse(entry)
    try {
      return ask(entry.opened)
    } catch {
      return
    }
  }

  /** Closes a database, so that the next use opens it again. */
  #reopen(entry: PoolEntry) {
    if (this.#entries.get(entry.key) === entry) this.#closeEntry(entry).catch(logCloseFailure)
  }

  #addEntry(key: string, place: DatabaseLocation, migrations: Migrations): PoolEntry {
    const { pinned = false } = place
    const entry: PoolEntry = {
      key,
      place,
      pinned,
      hasSlot: needsSlot(place),
      ready: this.#openDatabase(place, migrations),
      users: 0,
      lastUse: 0,
    }
    entry.ready.then(
      (opened) => Object.assign(entry, { opened }),
      () => this.#removeEntry(entry),
    )
    this.#entries.set(key, entry)
    this.#latest = entry
    if (!pinned) this.#evictableCount++
    this.#closeLeastUsed()
    this.#idleTimer ??= setInterval(() => this.releaseIdleMemory(), IDLE_CHECK_INTERVAL_MS).unref()
    return entry
  }

  #removeEntry(entry: PoolEntry) {
    if (this.#entries.get(entry.key) !== entry) return
    this.#entries.delete(entry.key)
    if (this.#latest === entry) this.#latest = undefined
    if (!entry.pinned) this.#evictableCount--
  }

  /** Removes an entry, so that it gets no new uses, and closes it when the running ones have ended. */
  #closeEntry(entry: PoolEntry): Promise<void> {
    this.#removeEntry(entry)
    const prepared = this.#closeListener?.(entry.place)
    const closing = (async () => {
      if (entry.users)
        await new Promise<void>((resolve) => {
          entry.onIdle = resolve
        })
      const { database } = entry.opened ?? (await entry.ready)
      await prepared
      await database.close().finally(() => entry.hasSlot && this.#slots.release())
    })()
    this.#closing.add(closing)
    return closing.finally(() => this.#closing.delete(closing))
  }

  async #openDatabase(place: DatabaseLocation, migrations: Migrations): Promise<OpenDatabase> {
    if (this.#isClosed) throw new Busy('The server is stopping.')
    if (needsSlot(place)) await this.#slots.acquire()
    try {
      const database = await this.engine.open(place, migrations)
      const { reads, commits } = databaseStatistics[engineOf(place)]
      const { slowAfter = 0 } = this.limits
      return {
        database,
        read: timeStatements(database.query, place, slowAfter, reads),
        readAtOnce: database.queryAtOnce && timeStatementsAtOnce(database.queryAtOnce, place, slowAfter, reads),
        writer: new GroupCommitWriter(database.transaction, this.limits.deadline, commits),
      }
    } catch (error) {
      if (needsSlot(place)) this.#slots.release()
      throw error
    }
  }

  /** Closes idle databases, the least recently used first, while more than allowed are open. */
  #closeLeastUsed() {
    // This runs after each statement, so it looks through the entries only when it must, and no further than it must.
    if (this.#evictableCount <= this.limits.openCount) return
    for (const entry of this.#entries.values()) {
      if (entry.pinned || entry.users || !entry.opened) continue
      this.#closeEntry(entry).catch(logCloseFailure)
      if (this.#evictableCount <= this.limits.openCount) return
    }
  }
}

const logCloseFailure = (error: unknown) => logError('DATABASE_NOT_CLOSED', { cause: error })
