import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { sha256 } from '../../../core/crypto'
import { fsyncDirectory } from '../../../core/fsync'
import { notFound } from '../../../core/problem'
import type { CommitCounters } from '../../commit-counters'
import { DatabaseDamaged, toStorageError } from '../../errors'
import {
  type Database,
  type DatabaseLocation,
  type Engine,
  type Executor,
  listPendingMigrations,
  type Migrations,
  type TenantCopyConnection,
  type VectorSearch,
  type WordIndex,
} from '../../port'
import { CheckpointScheduler } from './checkpoint-scheduler'
import { CachedConnection } from './connection'
import { closeAndTruncateLog, closeConnections, ignoreBusyOrFull } from './connection-close'
import { choosePragmas, openReader, openWriter } from './connections'
import { assertFile, DatabaseFiles, toOpenError } from './database-files'
import { DatabaseTemplate } from './database-template'
import { drivers, type OpenFile, type SqliteConnection, withExtension } from './drivers'
import { checkFile } from './file-check'
import type { CheckResult } from './file-check-worker'
import { type CopyEnd, copyDatabaseFile, type FileCopyControl } from './file-copy'
import { queryFile } from './file-query'
import { lockFolder, tryLock } from './folder-lock'
import { LazyWriter, type WriteAccess } from './lazy-writer'
import { type LogListener, type LogObserver, LogObservers } from './log-observer'
import { migrateDatabase } from './migration'
import { DatabaseReads } from './read-snapshot'
import { toRunnable } from './runnable-migrations'
import { readTables, SqliteTenantCopy } from './tenant-copy'
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
  /** Counts the commits, for others that read the folder. */
  commitCounters?: CommitCounters
  /** Whether others write to the folder while it is served from here. */
  isShared?: boolean
  /** The turns to write, for processes that serve the folder together. */
  writeTurns?: WriteTurns
}

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
  async open({ file, identity, exists = false }: DatabaseLocation, all: Migrations): Promise<Database> {
    const { folder, lockTimeout, synchronous } = this.options
    const migrations = toRunnable(await this.#getOpenFile(), all)
    const [path, mark] = [join(folder, file), toMark(identity)]
    if (exists) assertFile(path)
    else await this.#create(path, mark, migrations.sqlite)
    const options = { openFile: await this.#getOpenFile(), lockTimeout }
    let reader: CachedConnection | undefined
    let writer: LazyWriter | undefined
    try {
      reader = await openReader(path, options)
      const version = await reader.readPragma('user_version')
      if (version) await reader.assertMark(mark)
      else if (exists) throw new DatabaseDamaged(undefined, `${path} is not an Atoll database.`)
      const files = new DatabaseFiles(path)
      writer = new LazyWriter(() => openWriter(files, options, synchronous === 'full' ? folder : undefined))
      if (listPendingMigrations(version, migrations.sqlite).length) {
        const { sqlite, rewriting } = migrations
        const request = { path, mark, migrations: sqlite, rewriting, driver: this.options.driver, lockTimeout }
        const opened = writer
        await migrateDatabase(version, request, async () => (await opened.open()).connection)
      }
      // After a failed write the system may take pages in memory for written, so the log is copied again before it is
      // trusted.
      if (this.#failedPaths.has(path)) await (await writer.open()).connection.truncateLog()
      this.#failedPaths.delete(path)
      this.#closeAbandoned(path)
      return this.#createDatabase(file, files, mark, reader, writer, this.#logObservers.open(path, file))
    } catch (error) {
      const translated = toOpenError(error, path)
      await writer?.opened?.log?.close()
      for (const opened of [reader, writer?.opened?.connection]) opened?.close()
      throw translated
    }
  }

  /** Creates a database, unless there is one. @throws 404 TENANT_NOT_FOUND when the folder of the file is missing */
  async #create(path: string, mark: number, migrations: string[]) {
    mkdirSync(this.options.folder, { recursive: true, mode: 0o700 })
    if (!existsSync(dirname(path))) notFound('tenant')
    if (!existsSync(path)) this.#template.create(await this.#getOpenFile(), path, mark, migrations)
  }

  /** Returns a number that differs from an earlier one when another process of a shared folder has written. */
  remoteVersion = ({ file }: Pick<DatabaseLocation, 'file'>): number =>
    (this.options.isShared && this.options.commitCounters?.countOfOthers(file)) || 0

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
  async openTenantCopy({ file, identity }: DatabaseLocation, all: Migrations): Promise<TenantCopyConnection> {
    const { folder, lockTimeout } = this.options
    const { sqlite: migrations } = toRunnable(await this.#getOpenFile(), all)
    const path = join(folder, file)
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const session = new CachedConnection((await this.#getOpenFile())(path), lockTimeout)
    try {
      await session.executePatiently(`${choosePragmas()}; pragma synchronous = full; pragma foreign_keys = off`)
      await session.migrate((version) => listPendingMigrations(version, migrations), toMark(identity))
      for (const directory of [dirname(path), folder]) await fsyncDirectory(directory)
      return new SqliteTenantCopy(session, toMark(identity), await readTables(session.query))
    } catch (error) {
      session.close()
      throw error
    }
  }

  #createDatabase(
    file: string,
    files: DatabaseFiles,
    mark: number,
    reader: CachedConnection,
    writer: LazyWriter,
    observer: LogObserver | undefined,
  ): Database {
    const checkpoints = this.#checkpoints
    const { path, logLimit } = files
    const hasFailed = () => reader.hasDiskFailed || writer.hasFailed
    const { commitCounters, isShared, writeTurns } = this.options
    const reads = new DatabaseReads(reader, writer, isShared ? () => this.remoteVersion({ file }) : undefined)
    const transact = async (
      { connection, log }: WriteAccess,
      work: (executor: Executor) => Promise<void>,
      onVisible?: () => void,
    ) => {
      observer?.beforeWrite()
      const before = connection.statementCount
      reads.beginWrite()
      await connection
        .transaction(async (executor) => {
          await connection.assertMark(mark)
          await work(executor)
        })
        .finally(() => reads.endWrite())
      commitCounters?.add(file)
      onVisible?.()
      observer?.afterWrite()
      const length = files.requireInPlace()
      const kept = log?.waitUntilDurable()
      kept?.catch(() => {}) // the writer handles its failure, but only after the checkpoint
      await checkpoints.recordWrite(path, { statements: connection.statementCount - before, log: length, logLimit })
      return { kept }
    }
    return {
      query: reads.query,
      queryAtOnce: reads.querySync,
      getSnapshot: reads.getSnapshot,
      async transaction(work, onVisible) {
        const opened = await writer.open()
        opened.log?.assertHealthy()
        if (!writeTurns) return transact(opened, work, onVisible)
        await writeTurns.acquire(path)
        return transact(opened, work, onVisible).finally(() => writeTurns.release(path))
      },
      isBroken: () => hasFailed() || !files.isInPlace(),
      releaseMemory() {
        for (const session of [reader, writer.opened?.connection]) session?.execute('pragma shrink_memory')
      },
      close: async () => {
        reads.end()
        if (hasFailed()) this.#failedPaths.add(path)
        const { connection, log } = writer.opened ?? {}
        await Promise.all([checkpoints.waitForFile(path), log?.close()])
        observer?.close()
        writeTurns?.close(path)
        const isReplaced = files.isReplaced()
        if (isReplaced) this.#abandoned.push({ files, sessions: connection ? [reader, connection] : [reader] })
        else if (isShared) closeConnections(reader, connection)
        else await closeAndTruncateLog(reader, connection)
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

  /** Checks a file at any path, which nobody else uses, completely, and tells what it contains. */
  inspectFile = (path: string): Promise<CheckResult> =>
    checkFile({ file: path, driver: this.options.driver, isComplete: true, isMapped: true })

  /** Returns the rows of one query of a file at any path, which nobody writes to. */
  queryFile = async (path: string, sql: string) => queryFile(await this.#getOpenFile(), path, sql)

  /**
   * Copies a database into a new file while others write to it. A process that serves the database must not call this.
   * @throws DatabaseDamaged when the file is missing or empty
   */
  async copyDatabase({ file }: DatabaseLocation, copy: string, control?: FileCopyControl): Promise<CopyEnd> {
    const path = join(this.options.folder, file)
    assertFile(path)
    try {
      return await copyDatabaseFile(await this.#getOpenFile(), path, copy, control)
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

  /** Takes a lock of the name of a file, which ends with the process at the latest; undefined while somebody has it. */
  async tryLock(path: string): Promise<Disposable | undefined> {
    const lock = tryLock(await this.#getOpenFile(), path)
    return lock && { [Symbol.dispose]: () => lock.close() }
  }

  wordIndex = (): WordIndex => 'fts5'

  vectorSearch = (): VectorSearch => (this.options.vectorExtension ? 'sqlite-vec' : 'javascript')

  #getOpenFile() {
    const { driver, vectorExtension } = this.options
    this.#driver ??= drivers[driver]().then((connect) =>
      vectorExtension ? withExtension(connect, vectorExtension) : connect,
    )
    return this.#driver
  }
}
