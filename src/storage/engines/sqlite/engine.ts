import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ConfigError } from '../../../core/config-error'
import { sha256 } from '../../../core/crypto'
import { fsyncDirectory } from '../../../core/fsync'
import { notFound } from '../../../core/problem'
import { Busy, DatabaseDamaged, StorageFault, toStorageError } from '../../errors'
import {
  type Database,
  type DatabaseLocation,
  type Engine,
  type Executor,
  listPendingMigrations,
  type Migrations,
  type TenantCopyConnection,
  type VectorSearch,
} from '../../port'
import { CheckpointScheduler } from './checkpoint-scheduler'
import { CachedConnection } from './connection'
import { closeAndTruncateLog, closeConnections, ignoreBusyOrFull } from './connection-close'
import { assertFile, canBeOpened, DatabaseFiles, isOutOfDescriptors } from './database-files'
import { DatabaseTemplate } from './database-template'
import { drivers, type OpenFile, type SqliteConnection } from './drivers'
import { copyBeforeRewriting } from './earlier-copy'
import { checkFile } from './file-check'
import type { CheckResult } from './file-check-worker'
import { copyDatabaseFile, type FileCopyControl } from './file-copy'
import { lockFolder } from './folder-lock'
import { type LogListener, type LogObserver, LogObservers } from './log-observer'
import { ReadSnapshot } from './read-snapshot'
import { RemoteChanges } from './remote-changes'
import { readTables, SqliteTenantCopy } from './tenant-copy'
import { WalSync } from './wal-sync'
import type { WriteTurns } from './write-turns'

export type SqliteOptions = {
  driver: keyof typeof drivers
  folder: string
  /** `full`: a write is acknowledged only when it is on the disk. */
  synchronous: 'full' | 'normal'
  /** The longest that a write waits for another process, in ms. */
  lockTimeout: number
  /** The path of the sqlite-vec library; empty for none. */
  vectorExtension?: string
  /** Whether several processes serve the folder. */
  isShared?: boolean
  /** The turns to write, for processes that serve the folder together. */
  writeTurns?: WriteTurns
}

// SQLite's own wait for another process blocks this one, so it is short; `#retryWhileBusy` does the rest. The cache
// grows only as it is used, is released when the database is idle, and all connections together stay below the soft
// limit. Checkpoints run in another thread; SQLite's own are only for a log that is far behind.
const PRAGMAS = `pragma busy_timeout = 20; pragma journal_mode = wal; pragma foreign_keys = on;
  pragma cache_size = -64000; pragma soft_heap_limit = 536870912; pragma wal_autocheckpoint = 100000;
  pragma temp_store = memory`
/** The words of the full-text index. The table stores nothing, so each connection creates its own. */
const CREATE_VOCABULARY_SQL = `create virtual table if not exists temp.search_vocabulary using fts5vocab('main', 'search_words', 'instance')`

/** Returns the mark of a tenant's file: SQLite's `application_id`, a number of 31 bits. */
const toMark = (identity?: string) => (identity ? Number.parseInt(sha256(identity).slice(0, 8), 16) >>> 1 : 0)

/**
 * The engine for SQLite: one file for each database, with a connection that writes and one that reads only committed
 * data.
 */
export class Sqlite implements Engine {
  #driver?: Promise<OpenFile>
  #folderLock?: SqliteConnection

  #checkpoints: CheckpointScheduler
  #template: DatabaseTemplate
  /** Paths where the disk has failed: their logs may not be completely on the disk. */
  #failedPaths = new Set<string>()
  /** Connections to files that were replaced: closing them would remove the log of the new files. */
  #abandoned: { files: DatabaseFiles; sessions: CachedConnection[] }[] = []
  #logObservers: LogObservers
  /** Of open databases, by their paths. */
  #remoteChanges = new Map<string, RemoteChanges>()
  #latestRequest = 0

  constructor(private options: SqliteOptions) {
    this.#checkpoints = new CheckpointScheduler(options.driver)
    this.#template = new DatabaseTemplate(options.folder)
    this.#logObservers = new LogObservers(this.#checkpoints)
  }

  /**
   * Opens the database of a tenant.
   * @throws 404 TENANT_NOT_FOUND when the folder of the file is missing, or the tenant was ended
   * @throws DatabaseDamaged when the database should exist, but is missing or belongs to another tenant
   */
  async open(
    { file, identity, exists = false }: DatabaseLocation,
    { sqlite: migrations, rewriting }: Migrations,
  ): Promise<Database> {
    const { folder, lockTimeout, synchronous } = this.options
    const connect = await this.#getOpenFile()
    const [path, mark] = [join(folder, file), toMark(identity)]
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (exists) assertFile(path)
    else if (!existsSync(dirname(path))) notFound('tenant')
    else if (!existsSync(path)) this.#template.create(connect, path, mark, migrations)
    const sessions: CachedConnection[] = []
    const session = async (pragmas: string) => {
      const opened = new CachedConnection(connect(path, exists), lockTimeout)
      sessions.push(opened)
      await opened.executePatiently(`${PRAGMAS}; ${CREATE_VOCABULARY_SQL}; ${pragmas}`)
      return opened
    }
    try {
      const writer = await session('pragma synchronous = full')
      if (await writer.readPragma('user_version')) await writer.assertMark(mark)
      else if (exists) throw new DatabaseDamaged(undefined, `${path} is not an Atoll database.`)
      await copyBeforeRewriting(writer, path, rewriting)
      await writer.migrate((version) => listPendingMigrations(version, migrations), mark)
      await writer.assertMark(mark)
      // After a failed write the system may take pages in memory for written, so the log is copied again before it is
      // trusted.
      if (this.#failedPaths.has(path)) await writer.truncateLog()
      this.#failedPaths.delete(path)
      writer.execute('pragma synchronous = normal')
      const reader = await session('pragma query_only = on')
      this.#closeAbandoned(path)
      const files = new DatabaseFiles(path)
      // Last, because it keeps a descriptor that nothing else would close.
      const log = synchronous === 'full' ? new WalSync(path, [...new Set([dirname(path), folder])]) : undefined
      return this.#createDatabase(files, mark, writer, reader, log, this.#logObservers.open(path, file))
    } catch (error) {
      const isBusy = isOutOfDescriptors() || canBeOpened(error, path)
      for (const opened of sessions) opened.close()
      const translated = toStorageError(error)
      throw translated instanceof StorageFault && isBusy ? new Busy(error) : translated
    }
  }

  /**
   * Lets what is read from now on have everything that other processes have committed by now. The server takes several
   * requests in one turn of the event loop, and a later one may follow an answer of another process.
   */
  beginRequest() {
    this.#latestRequest++
  }

  /** Returns a number that differs from an earlier one when another process has written; it is for shared folders. */
  remoteVersion({ file }: DatabaseLocation): number {
    if (!this.options.isShared) return 0
    // A database that is closed is not observed, so that its caches are checked once it is open again.
    return this.#remoteChanges.get(join(this.options.folder, file))?.version() ?? -1
  }

  /** Empties logs that were left because their last users closed them at the same time. */
  async removeLeftLogs(files: string[]): Promise<void> {
    for (const file of files) {
      if (!existsSync(join(this.options.folder, `${file}-wal`))) continue
      await this.#useFile(file, (connection) => connection.truncateLog()).catch(ignoreBusyOrFull)
    }
  }

  readSchemaVersion = ({ file }: DatabaseLocation): Promise<number> =>
    this.#useFile(file, (connection) => connection.readPragma('user_version'))

  /** Builds all indexes of a database anew, while it is used. @throws 503 BUSY when writers do not let it begin */
  rebuildIndexes = ({ file }: DatabaseLocation): Promise<void> =>
    this.#useFile(file, (connection) => connection.executePatiently('reindex'))

  async #useFile<T>(file: string, work: (connection: CachedConnection) => Promise<T>): Promise<T> {
    const path = join(this.options.folder, file)
    assertFile(path)
    const connection = new CachedConnection((await this.#getOpenFile())(path, true), this.options.lockTimeout)
    return work(connection).finally(() => connection.close())
  }

  /** Opens a file for copying, and creates its folder, too. */
  async openTenantCopy(
    { file, identity }: DatabaseLocation,
    { sqlite: migrations }: Migrations,
  ): Promise<TenantCopyConnection> {
    const { folder, lockTimeout } = this.options
    const path = join(folder, file)
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const session = new CachedConnection((await this.#getOpenFile())(path), lockTimeout)
    try {
      await session.executePatiently(`${PRAGMAS}; pragma synchronous = full; pragma foreign_keys = off`)
      await session.migrate((version) => listPendingMigrations(version, migrations), toMark(identity))
      for (const directory of [dirname(path), folder]) await fsyncDirectory(directory)
      return new SqliteTenantCopy(session, toMark(identity), await readTables(session.query))
    } catch (error) {
      session.close()
      throw error
    }
  }

  #createDatabase(
    files: DatabaseFiles,
    mark: number,
    writer: CachedConnection,
    reader: CachedConnection,
    log: WalSync | undefined,
    observer: LogObserver | undefined,
  ): Database {
    const checkpoints = this.#checkpoints
    const { path, logLimit } = files
    const hasFailed = () => writer.hasDiskFailed || reader.hasDiskFailed || !!log?.hasFailed
    const { isShared, writeTurns } = this.options
    const snapshot = new ReadSnapshot(reader, isShared ? () => this.#latestRequest : undefined)
    const remoteChanges = new RemoteChanges(snapshot, writer)
    if (isShared) this.#remoteChanges.set(path, remoteChanges)
    const transact = async (work: (executor: Executor) => Promise<void>) => {
      observer?.beforeWrite()
      const before = writer.statementCount
      await writer.transaction(async (executor) => {
        await writer.assertMark(mark)
        await work(executor)
      })
      snapshot.end()
      observer?.afterWrite()
      const length = files.requireInPlace()
      const kept = log?.waitUntilDurable()
      kept?.catch(() => {}) // the writer handles its failure, but only after the checkpoint
      await checkpoints.recordWrite(path, { statements: writer.statementCount - before, log: length, logLimit })
      return { kept }
    }
    return {
      query: snapshot.query,
      async transaction(work) {
        log?.assertHealthy()
        if (!writeTurns) return transact(work)
        await writeTurns.acquire(path)
        return transact(work).finally(() => writeTurns.release(path))
      },
      isBroken: () => hasFailed() || !files.isInPlace(),
      releaseMemory() {
        for (const session of [reader, writer]) session.execute('pragma shrink_memory')
      },
      close: async () => {
        snapshot.end()
        if (hasFailed()) this.#failedPaths.add(path)
        await Promise.all([checkpoints.waitForFile(path), log?.close()])
        observer?.close()
        writeTurns?.close(path)
        if (this.#remoteChanges.get(path) === remoteChanges) this.#remoteChanges.delete(path)
        const isReplaced = files.isReplaced()
        if (isReplaced) this.#abandoned.push({ files, sessions: [reader, writer] })
        else if (isShared) closeConnections(writer, reader)
        else await closeAndTruncateLog(writer, reader)
        if (observer) this.#logObservers.close(observer, isReplaced)
      },
    }
  }

  /** Tells a listener what is added to the logs of databases that are opened from now on. */
  observeLogs = (listener: LogListener | undefined) => this.#logObservers.setListener(listener)

  /** Lets the listener know what was added to the logs since the last call. */
  readLogs = () => this.#logObservers.read()

  /** Abandoned connections can be closed safely once their files are back and open again. */
  #closeAbandoned(path: string) {
    const back = this.#abandoned.filter(({ files }) => files.path === path && files.isInPlace())
    this.#abandoned = this.#abandoned.filter((abandoned) => !back.includes(abandoned))
    for (const { sessions } of back) for (const session of sessions) session.close()
  }

  /**
   * Returns what is wrong with a file, in SQLite's words; an empty list for a sound one. A worker thread reads all of
   * the file while it is in use.
   */
  async checkDatabase({ file }: DatabaseLocation, isComplete = false): Promise<string[]> {
    const path = join(this.options.folder, file)
    assertFile(path)
    return (await checkFile({ file: path, driver: this.options.driver, isComplete })).flaws
  }

  /** Checks a file at any path completely, and tells what it contains. */
  inspectFile = (path: string): Promise<CheckResult> =>
    checkFile({ file: path, driver: this.options.driver, isComplete: true })

  /**
   * Copies a database into a new file while others write to it. A process that serves the database must not call this.
   * @throws DatabaseDamaged when the file is missing or empty
   */
  async copyDatabase({ file }: DatabaseLocation, copy: string, control?: FileCopyControl): Promise<void> {
    const path = join(this.options.folder, file)
    assertFile(path)
    try {
      await copyDatabaseFile(await this.#getOpenFile(), path, copy, control)
    } catch (error) {
      throw toStorageError(error)
    }
  }

  async close() {
    this.#checkpoints.close()
    this.#folderLock?.close()
  }

  /** Makes this process the only server of the folder. @throws ConfigError when another process serves it */
  async lockFolder() {
    this.#folderLock = lockFolder(await this.#getOpenFile(), this.options.folder)
  }

  vectorSearch = (): VectorSearch => (this.options.vectorExtension ? 'sqlite-vec' : 'javascript')

  #getOpenFile() {
    const { driver, vectorExtension } = this.options
    this.#driver ??= drivers[driver]().then((connect) =>
      vectorExtension ? withExtension(connect, vectorExtension) : connect,
    )
    return this.#driver
  }
}

/** @throws ConfigError when the extension cannot be loaded */
const withExtension =
  (connect: OpenFile, path: string): OpenFile =>
  (file, exists) => {
    const connection = connect(file, exists)
    try {
      connection.loadExtension(path)
      return connection
    } catch (cause) {
      connection.close()
      throw new ConfigError(`SQLite cannot load the extension ${path} of ATOLL_SQLITE_VEC.`, { cause })
    }
  }
