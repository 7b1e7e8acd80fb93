import { Postgres } from '../../src/storage/engines/postgres/engine'
import { Sqlite, type SqliteOptions } from '../../src/storage/engines/sqlite/engine'
import type { Engine } from '../../src/storage/port'
import { createTempFolder } from '../temp-folder'

export const freshFolder = () => createTempFolder('suite')

/** An engine with files in a folder of its own. */
export const sqlite = (options: Partial<SqliteOptions> = {}) =>
  new Sqlite({ driver: 'bun:sqlite', folder: freshFolder(), synchronous: 'normal', lockTimeout: 2_000, ...options })

type Options = Partial<Omit<SqliteOptions, 'driver'>>

/** The SQLite engine with each of its drivers. */
export const fileEngines: [string, (options?: Options) => Sqlite][] = [
  ['SQLite by bun:sqlite', (options) => sqlite({ ...options, driver: 'bun:sqlite' })],
  ['SQLite by better-sqlite3', (options) => sqlite({ ...options, driver: 'better-sqlite3' })],
]

/** The database that tests may use, if there is one. */
export const databaseUrl = process.env.TEST_DATABASE_URL

export const postgres = (url = databaseUrl!, deadline = 2_000) => new Postgres({ url, deadline, connections: 10 })

type EngineCase = [string, (options?: { folder?: string }) => Engine]
const serverEngine: EngineCase = ['PostgreSQL', () => postgres()]

/** The engines that this run proves: a run with PostgreSQL leaves SQLite to the run without. */
export const engines: EngineCase[] = databaseUrl ? [serverEngine] : fileEngines

/** The engines whose answers this run compares with each other. */
export const comparedEngines: EngineCase[] = databaseUrl ? [fileEngines[0]!, serverEngine] : fileEngines

/** The pairs of engines between which this run copies tenants: those with PostgreSQL, or those of files. */
export const enginePairs: [EngineCase, EngineCase][] = databaseUrl
  ? [[serverEngine, serverEngine], ...fileEngines.flatMap(pairWithServer)]
  : fileEngines.flatMap((one) => fileEngines.map((other): [EngineCase, EngineCase] => [one, other]))

function pairWithServer(one: EngineCase): [EngineCase, EngineCase][] {
  return [
    [one, serverEngine],
    [serverEngine, one],
  ]
}

if (!databaseUrl)
  console.warn(
    'SKIPPED: the tests of PostgreSQL, because TEST_DATABASE_URL is not set. `npm run test:postgres` sets it.',
  )
