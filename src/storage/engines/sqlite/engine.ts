import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { storageError } from '../../errors'
import { type Database, type Engine, type Migrations, type Place, pending } from '../../port'
import { type Connection, drivers } from './drivers'
import { Session } from './session'

export type SqliteOptions = {
  driver: keyof typeof drivers
  folder: string
  synchronous: 'full' | 'normal'
  /** How long a write waits for another process, in ms. */
  patience: number
}

// Waiting for another process stops all of this one, so SQLite itself waits only for a moment; `begin` does the rest.
// 64 MB of log between checkpoints: a page that changes often is written to its place once instead of many times.
// The cache takes memory only as it fills, and all connections together no more than the soft limit.
const PRAGMAS = `pragma busy_timeout = 20; pragma journal_mode = wal; pragma foreign_keys = on;
  pragma cache_size = -64000; pragma soft_heap_limit = 536870912; pragma wal_autocheckpoint = 16000;
  pragma temp_store = memory`

/** A file for each database, with a connection that writes and one that reads and never sees work in progress. */
export class Sqlite implements Engine {
  #driver?: Promise<(file: string) => Connection>
  #owned?: Connection

  constructor(private options: SqliteOptions) {}

  async open({ file }: Place, { sqlite: migrations }: Migrations): Promise<Database> {
    const connect = await this.#connect()
    const path = join(this.options.folder, file)
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const { patience, synchronous } = this.options
    const writer = new Session(connect(path), `${PRAGMAS}; pragma synchronous = ${synchronous}`, patience)
    await writer.migrate((version) => pending(version, migrations))
    const reader = new Session(connect(path), `${PRAGMAS}; pragma query_only = on`, patience)
    return {
      ask: reader.ask,
      transaction: writer.transaction,
      async close() {
        reader.close()
        await writer.ask('pragma wal_checkpoint(truncate)')
        writer.close()
      },
    }
  }

  async close() {
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
      throw new Error(`Another process serves the folder "${folder}". Stop it, or choose another ATOLL_TENANTS.`, {
        cause: storageError(cause),
      })
    }
    this.#owned = lock
  }

  #connect() {
    this.#driver ??= drivers[this.options.driver]()
    return this.#driver
  }
}
