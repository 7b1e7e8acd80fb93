import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { config } from '../../src/config'
import { Sqlite, type SqliteOptions } from '../../src/storage/engines/sqlite/engine'

export const freshFolder = () => mkdtempSync(join(config.ATOLL_TENANTS, 'suite-'))

/** An engine with files in a folder of its own. */
export const sqlite = (options: Partial<SqliteOptions> = {}) =>
  new Sqlite({ driver: 'bun:sqlite', folder: freshFolder(), synchronous: 'normal', patience: 2_000, ...options })

type Options = Partial<Omit<SqliteOptions, 'driver'>>

/** Every engine that can run here, with each of its drivers. */
export const engines: [string, (options?: Options) => Sqlite][] = [
  ['SQLite by bun:sqlite', (options) => sqlite({ ...options, driver: 'bun:sqlite' })],
  ['SQLite by better-sqlite3', (options) => sqlite({ ...options, driver: 'better-sqlite3' })],
]
