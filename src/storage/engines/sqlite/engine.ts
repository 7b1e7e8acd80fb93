import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ConfigError } from '../../../core/config-error'
import { missing } from '../../../core/problem'
import { hashed } from '../../../core/secret'
import { Busy, Damaged, StorageFault, StorageFull, storageError } from '../../errors'
import { type Bulk, type Comparing, type Database, type Engine, type Migrations, type Place, pending } from '../../port'
import { SqliteBulk, tablesOf, unlessBusy } from './bulk'
import { checkFile } from './check'
import { Checkpoints } from './checkpoints'
import { type Connect, type Connection, drivers } from './drivers'
import { areDescriptorsUsedUp, couldBeOpened, Files, requireFile } from './files'
import { keepNames, Log } from './log'
import { Session } from './session'
import { Snapshot } from './snapshot'

export type SqliteOptions = {
  driver: keyof typeof drivers
  folder: string
  /** Whether a write is acknowledged only when the disk has it. */
  synchronous: 'full' | 'normal'
  /** How long a write waits for another process, in ms. */
  patience: number
  /** Where the library of sqlite-vec is; empty without one. */
  vectors?: string
}

// Waiting for another process stops all of this one, so SQLite itself waits only for a moment; `begin` does the rest.
// The cache takes memory only as it fills, until nobody asks any more, and all connections together no more than the
// soft limit. Checkpoints are
// left to another thread; SQLite's own are for the case that it is far behind.
const PRAGMAS = `pragma busy_timeout = 20; pragma journal_mode = wal; pragma foreign_keys = on;
  pragma cache_size = -64000; pragma soft_heap_limit = 536870912; pragma wal_autocheckpoint = 100000;
  pragma temp_store = memory`
/** Which words there are. It holds nothing, so each connection has its own. */
const VOCABULARY = `create virtual table if not exists temp.search_vocabulary using fts5vocab('main', 'search_words', 'instance')`

/** Leaves one whole file and no log. */
async function closeWhole(writer: Session, reader: Session) {
  reader.close()
  try {
    await writer.emptyLog().catch(unlessBusyOrFull)
  } finally {
    writer.close()
  }
}

/** Where the disk is full the log stays beside its file, and nothing is lost. */
const unlessBusyOrFull = (error: unknown) => {
  if (!(error instanceof StorageFull)) unlessBusy(error)
}

/** A file says whose it is by SQLite's `application_id`, a number of 31 bits. */
const markOf = (identity?: string) => (identity ? Number.parseInt(hashed(identity).slice(0, 8), 16) >>> 1 : 0)

/** A file for each database, with a connection that writes and one that reads and never sees work in progress. */
export class Sqlite implements Engine {
  #driver?: Promise<Connect>
  #owned?: Connection

  #checkpoints: Checkpoints
  /** Paths where the disk has failed: what is in their logs may not be on it. */
  #failed = new Set<string>()
  /** Connections to files in whose place there are others now; to close them would remove the log of those. */
  #abandoned: { files: Files; sessions: Session[] }[] = []

  constructor(private options: SqliteOptions) {
    this.#checkpoints = new Checkpoints(options.driver)
  }

  /**
   * @throws 404 when the folder of the file is gone, or its tenant was ended; Damaged when there is no database of this
   * identity, though it exists
   */
  async open({ file, identity, exists = false }: Place, { sqlite: migrations }: Migrations): Promise<Database> {
    const { folder, patience, synchronous } = this.options
    const connect = await this.#connect()
    const [path, mark] = [join(folder, file), markOf(identity)]
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (exists) requireFile(path)
    else if (!existsSync(dirname(path))) missing('tenant')
    const sessions: Session[] = []
    const session = async (pragmas: string) => {
      const opened = new Session(connect(path, exists), patience)
      sessions.push(opened)
      await opened.setUp(`${PRAGMAS}; ${VOCABULARY}; ${pragmas}`)
      return opened
    }
    try {
      const writer = await session('pragma synchronous = full')
      if (await writer.pragma('user_version')) await writer.requireMark(mark)
      else if (exists) throw new Damaged(undefined, `${path} is not a database of Atoll.`)
      await writer.migrate((version) => pending(version, migrations), mark)
      await writer.requireMark(mark)
      // What the system has in memory passes for written once it could not be: it is written again before it counts.
      if (this.#failed.has(path)) await writer.emptyLog()
      this.#failed.delete(path)
      writer.run('pragma synchronous = normal')
      const reader = await session('pragma query_only = on')
      const log = synchronous === 'full' ? new Log(path, [...new Set([dirname(path), folder])]) : undefined
      this.#closeAbandoned(path)
      return this.#database(new Files(path), mark, writer, reader, log)
    } catch (error) {
      const isBusy = areDescriptorsUsedUp() || couldBeOpened(error, path)
      for (const opened of sessions) opened.close()
      const told = storageError(error)
      throw told instanceof StorageFault && isBusy ? new Busy(error) : told
    }
  }

  /** For copies: the folder of the file is made, too. */
  async bulk({ file, identity }: Place, { sqlite: migrations }: Migrations): Promise<Bulk> {
    const { folder, patience } = this.options
    const path = join(folder, file)
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const session = new Session((await this.#connect())(path), patience)
    try {
      await session.setUp(`${PRAGMAS}; pragma synchronous = full; pragma foreign_keys = off`)
      await session.migrate((version) => pending(version, migrations), markOf(identity))
      for (const one of [dirname(path), folder]) await keepNames(one)
      return new SqliteBulk(session, markOf(identity), await tablesOf(session.ask))
    } catch (error) {
      session.close()
      throw error
    }
  }

  #database(files: Files, mark: number, writer: Session, reader: Session, log: Log | undefined): Database {
    const checkpoints = this.#checkpoints
    const { path, logLimit } = files
    const hasFailed = () => writer.failed || reader.failed || !!log?.failed
    const snapshot = new Snapshot(reader)
    return {
      ask: snapshot.ask,
      async transaction(work) {
        log?.refuseBroken()
        const before = writer.asked
        await writer.transaction(async (asking) => {
          await writer.requireMark(mark)
          await work(asking)
        })
        snapshot.end()
        const length = files.requireInPlace()
        const kept = log?.kept()
        kept?.catch(() => {}) // who waits for it hears of it, but only after the checkpoint
        await checkpoints.wrote(path, { statements: writer.asked - before, log: length, logLimit })
        return { kept }
      },
      isBroken: () => hasFailed() || !files.areInPlace(),
      rest() {
        for (const session of [reader, writer]) session.run('pragma shrink_memory')
      },
      close: async () => {
        snapshot.end()
        if (hasFailed()) this.#failed.add(path)
        await Promise.all([checkpoints.finish(path), log?.close()])
        if (files.areReplaced()) this.#abandoned.push({ files, sessions: [reader, writer] })
        else await closeWhole(writer, reader)
      },
    }
  }

  /** What was abandoned can be closed without harm once its files are back, and somebody else has them open. */
  #closeAbandoned(path: string) {
    const back = this.#abandoned.filter(({ files }) => files.path === path && files.areInPlace())
    this.#abandoned = this.#abandoned.filter((one) => !back.includes(one))
    for (const { sessions } of back) for (const session of sessions) session.close()
  }

  /**
   * What is wrong with a file as a whole, in SQLite's words; nothing when it is well. A thread of its own reads all of it,
   * while others use it.
   */
  async check({ file }: Place): Promise<string[]> {
    const path = join(this.options.folder, file)
    requireFile(path)
    return checkFile({ file: path, driver: this.options.driver })
  }

  async close() {
    this.#checkpoints.close()
    this.#owned?.close()
  }

  /**
   * Makes this process the only server of the folder, by a lock that the system drops with the process: nothing is
   * left stale by a crash. Commands beside a running server don't ask for it.
   */
  async own() {
    const { folder } = this.options
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const lock = (await this.#connect())(join(folder, 'lock.db'))
    try {
      lock.exec('pragma busy_timeout = 0; begin exclusive')
    } catch (cause) {
      lock.close()
      if (!(storageError(cause) instanceof Busy)) throw cause
      throw new ConfigError(`Another process serves the folder "${folder}". Stop it, or choose another ATOLL_TENANTS.`)
    }
    this.#owned = lock
  }

  comparing = (): Comparing => (this.options.vectors ? 'sqlite-vec' : 'javascript')

  #connect() {
    const { driver, vectors } = this.options
    this.#driver ??= drivers[driver]().then((connect) => (vectors ? extended(connect, vectors) : connect))
    return this.#driver
  }
}

/** @throws ConfigError where the library can't be loaded */
const extended =
  (connect: Connect, path: string): Connect =>
  (file, exists) => {
    const connection = connect(file, exists)
    try {
      connection.loadExtension(path)
      return connection
    } catch (cause) {
      connection.close()
      throw new ConfigError(`ATOLL_SQLITE_VEC is ${path}, which SQLite cannot load here.`, { cause })
    }
  }
