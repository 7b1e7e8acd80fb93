import { Database } from 'bun:sqlite'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { findPostgresBin, type PostgresServer, queryDatabase, startPostgres } from '../fakes/postgres'
import { createTempFolder } from '../temp-folder'

export type EngineName = 'sqlite' | 'postgres'
type Row = Record<string, unknown>

/** The database of the tenant "acme" in the data folder of an installation, and beside it where there is a server. */
export type FixtureDatabase = {
  /** The settings of a server that uses it. */
  env: Record<string, string>
  /** Runs a statement. Parameters are written as `?`. */
  query<T = Row>(sql: string, values?: unknown[]): Promise<T[]>
  listTables(): Promise<string[]>
  /** Writes everything that is not in the folder into it. */
  dump(): Promise<void>
  stop(): Promise<void>
}

const DUMP = 'postgres.sql'
const TENANT_ROLE = 'atoll_app'

/**
 * Opens the database of an installation in a folder. A PostgreSQL server is started for it, and filled if the folder has
 * a dump.
 */
export const openFixtureDatabase = (engine: EngineName, folder: string): Promise<FixtureDatabase> =>
  engine === 'sqlite' ? openFile(folder) : openServer(folder)

/** Unpacks an archive of a released database into a folder. */
export async function unpackFixture(archive: string, folder: string) {
  if (await Bun.spawn(['tar', '-xzf', archive, '-C', folder]).exited) throw new Error(`${archive} cannot be unpacked.`)
}

async function openFile(folder: string): Promise<FixtureDatabase> {
  async function query<T>(sql: string, values: unknown[] = []): Promise<T[]> {
    const db = new Database(join(folder, 'tenants/acme/data.db'))
    try {
      db.run('pragma busy_timeout = 5000')
      return db.query(sql).all(...(values as string[])) as T[]
    } finally {
      db.close(true)
    }
  }
  const listTables = async () =>
    (await query<{ name: string }>("select name from sqlite_master where type = 'table' order by name")).map(
      ({ name }) => name,
    )
  return { env: {}, query, listTables, dump: async () => {}, stop: async () => {} }
}

async function openServer(folder: string): Promise<FixtureDatabase> {
  const server = await startPostgres()
  const dump = join(folder, DUMP)
  if (existsSync(dump)) await restore(server, dump)
  async function query<T>(sql: string, values: unknown[] = []): Promise<T[]> {
    let number = 0
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    try {
      await client.query('set search_path to atoll_b0001')
      await client.query("select set_config('app.tenant', tenant_id::text, false) from tenant_lock")
      return (
        await client.query(
          sql.replaceAll('?', () => `$${++number}`),
          values,
        )
      ).rows
    } finally {
      await client.end()
    }
  }
  const listTables = async () =>
    (
      await query<{ name: string }>(
        "select tablename::text as name from pg_tables where schemaname = 'atoll_b0001' order by name",
      )
    ).map(({ name }) => name)
  return {
    env: { ATOLL_DATABASE_URL: server.url },
    query,
    listTables,
    dump: async () => writeFileSync(dump, dumpDatabase(server)),
    stop: () => server.stop(),
  }
}

/** The program of PostgreSQL of this name. */
const program = (name: string) => join(findPostgresBin()!, name)

function dumpDatabase({ url }: PostgresServer): string {
  const { stdout, stderr, success } = Bun.spawnSync([program('pg_dump'), '--no-owner', '--inserts', url])
  if (!success) throw new Error(`pg_dump failed: ${stderr}`)
  // Only the psql of the same release knows these commands.
  return `${stdout}`.replaceAll(/^\\(un)?restrict .*\n/gm, '')
}

async function restore({ url }: PostgresServer, dump: string) {
  // A dump names roles, but does not create them.
  await queryDatabase(url, `create role ${TENANT_ROLE} nologin nosuperuser nobypassrls`)
  await queryDatabase(url, `grant ${TENANT_ROLE} to current_user`)
  const command = [program('psql'), '-q', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f', dump, url]
  const { stderr, success } = Bun.spawnSync(command)
  if (!success) throw new Error(`psql failed: ${stderr}`)
}

/**
 * Holds the lease without which no process runs jobs. Returns what releases it. Like a process, it renews the lease all
 * the time: one that expires much later is taken as one from before the clock was set back.
 */
export async function holdJobs({ query }: FixtureDatabase): Promise<() => Promise<void>> {
  const setLease = async (holder: string | null, expires: number) => {
    const changed = await query(
      "update leases set holder = ?, token = token + 1, expires = ? where name = 'jobs' returning name",
      [holder, expires],
    )
    if (changed.length !== 1) throw new Error('No server has run jobs here yet.')
  }
  const renew = () => setLease('test', Date.now() + 60_000)
  await renew()
  let renewing = Promise.resolve()
  const timer = setInterval(() => {
    renewing = renewing.then(renew)
  }, 10_000)
  return async () => {
    clearInterval(timer)
    await renewing
    await setLease(null, 0)
  }
}

/** Replaces texts in columns of the database, which may be JSON. */
export async function replaceTexts(
  { query, env }: FixtureDatabase,
  columns: Record<string, string[]>,
  texts: [old: string, replacement: string][],
) {
  for (const [table, names] of Object.entries(columns))
    for (const name of names)
      for (const [old, replacement] of texts) {
        const replaced = env.ATOLL_DATABASE_URL
          ? `${name} = (jsonb_populate_record(null::${table}, jsonb_build_object('${name}', replace(to_jsonb(${name})::text, ?, ?)::jsonb))).${name}`
          : `${name} = replace(${name}, ?, ?)`
        await query(`update ${table} set ${replaced}`, [old, replacement])
      }
}

/** Creates a folder for a data folder, and removes it with everything in it at the end of the block. */
export function createFixtureFolder() {
  const path = createTempFolder('fixture')
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) }
}

/** What a server issued while a database was filled, such as tokens and ids. */
export const readIssued = (path: string) => JSON.parse(readFileSync(path, 'utf8'))
