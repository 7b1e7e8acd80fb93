import pg from 'pg'
import { notFound } from '../../../core/problem'
import { Busy, DatabaseDamaged, TenantMoved, TransactionAborted, toStorageError } from '../../errors'
import type {
  Database,
  DatabaseLocation,
  Engine,
  Executor,
  Migrations,
  NameClaim,
  TenantCopyConnection,
} from '../../port'
import { AutoAnalyze } from './auto-analyze'
import { migrateBucket, TENANT_ROLE } from './buckets'
import { hasCitus, moveBucketSchema, PROPAGATE_LOCAL_SQL } from './citus'
import { claimName } from './name-claim'
import { NotifyListener } from './notify-listener'
import { runMany, runQuery } from './query'
import { ReadBatcher, type ReadQuery } from './read-batcher'
import { openTenantCopy } from './tenant-copy'

export type PostgresOptions = {
  url: string
  /** The time limit of a statement, in ms. */
  deadline: number
  /** The most connections of the pool. */
  connections: number
}

for (const bigintOrNumeric of [20, 1700]) pg.types.setTypeParser(bigintOrNumeric, Number)
for (const json of [114, 3802]) pg.types.setTypeParser(json, String) // JSON is written as text, and read as text

const CONNECT_TIMEOUT_MS = 1_500 // a longer wait for a connection is 503 BUSY
const MAX_TRANSACTION_ATTEMPTS = 3
const COMMITS_PER_CLEANUP = 500
const CLEANUP_SQL = "delete from commits where made < now() - interval '1 hour'"
const NO_TENANT_ID = '00000000-0000-0000-0000-000000000000'

/** Returns the id of the tenant that owns the rows in a bucket. */
const tenantIdOf = ({ identity }: DatabaseLocation) => identity || NO_TENANT_ID

function requireBucket(place: DatabaseLocation) {
  if (!place.bucket) throw new Error('A database location in PostgreSQL needs a bucket.')
  return { bucket: place.bucket, tenant: tenantIdOf(place) }
}

/** The engine for PostgreSQL. Tenants share a bucket's tables; row-level security separates their rows. */
export class Postgres implements Engine {
  #pool: pg.Pool
  #migrated = new Map<string, Promise<void>>()
  #listener: NotifyListener
  #autoAnalyze: AutoAnalyze
  #commits = 0
  #hasCitus = false

  constructor(private options: PostgresOptions) {
    const { url, deadline, connections } = options
    this.#listener = new NotifyListener(url)
    this.#pool = new pg.Pool({
      connectionString: url,
      max: connections,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      // A query to a silent server fails, and its connection is closed.
      query_timeout: deadline + CONNECT_TIMEOUT_MS,
      keepAlive: true,
      pipeline: true,
    })
    this.#autoAnalyze = new AutoAnalyze(this.#pool)
    // The user of a broken connection gets its error, but without a listener the error would end the process.
    this.#pool.on('error', () => {}).on('connect', (client) => client.on('error', () => {}))
  }

  /**
   * Opens the data of a tenant.
   * @throws 404 TENANT_NOT_FOUND when the tenant was ended
   * @throws DatabaseDamaged when its rows should exist but are missing
   */
  async open(place: DatabaseLocation, { postgres: migrations }: Migrations): Promise<Database> {
    const { bucket, tenant } = requireBucket(place)
    await this.#migrate(bucket, migrations)
    const start = this.#startStatements(bucket, tenant)
    await this.#runTransaction(start, async ({ query }) => {
      if (!place.exists) await query('insert into tenant_lock default values on conflict do nothing')
      const rows = await query(SELECT_SERVED_SQL)
      if (!rows.length)
        throw new DatabaseDamaged(undefined, `The rows of this tenant are missing in the schema "${bucket}".`)
      assertServed(rows)
    })
    // A row, unlike an advisory lock, is locked on the node that has the bucket. The policy selects the tenant's own
    // row. With the lock comes whether changes are being captured.
    const startExclusive = `${start}; set local lock_timeout to ${this.options.deadline};
      set local idle_in_transaction_session_timeout to ${this.options.deadline + CONNECT_TIMEOUT_MS};
      select set_config('app.followed', case when followed > now() then 'yes' else 'no' end, true)
        from (select followed from tenant_lock where ended is null for update) as lock`
    const reads = new ReadBatcher((questions) => this.#runReads(start, questions))
    return {
      query: reads.query,
      transaction: async (work) => {
        let rows = 0
        await this.#retryTransaction(startExclusive, ({ query, executeMany }) =>
          work({
            query: (sql, params) => {
              rows++
              return query(sql, params)
            },
            executeMany: (sql, list) => {
              rows += list.length
              return executeMany(sql, list)
            },
          }),
        )
        this.#autoAnalyze.recordRows(bucket, tenant, rows)
        return {}
      },
      close: async () => {},
    }
  }

  async close() {
    await Promise.all([this.#listener.close(), this.#pool.end()])
  }

  remoteVersion(place: DatabaseLocation) {
    return this.#listener.remoteVersion(tenantIdOf(place))
  }

  /** Returns the version of the server, and whether it runs Citus. @throws 503 BUSY when it cannot be reached */
  async getServerInfo() {
    return this.#withConnection(async (client) => {
      const { rows } = await client.query(
        "select current_setting('server_version') as server, exists (select from pg_extension where extname = 'citus') as citus",
      )
      return rows[0] as { server: string; citus: boolean }
    })
  }

  async retire(place: DatabaseLocation, { postgres: migrations }: Migrations) {
    const { bucket, tenant } = requireBucket(place)
    await this.#migrate(bucket, migrations)
    await this.#runTransaction(this.#startStatements(bucket, tenant), async ({ query }) => {
      await query('insert into tenant_lock default values on conflict do nothing')
      await query('update tenant_lock set ended = ?, moved = null', [Date.now()])
    })
  }

  async openTenantCopy(place: DatabaseLocation, { postgres: migrations }: Migrations): Promise<TenantCopyConnection> {
    const { bucket, tenant } = requireBucket(place)
    await this.#migrate(bucket, migrations)
    return openTenantCopy(await this.#connect(), this.#startStatements(bucket, tenant))
  }

  /** Returns undefined when another process has claimed the name. */
  async claim(name: string): Promise<NameClaim | undefined> {
    return claimName(await this.#connect(), name)
  }

  /** Moves a bucket to another node of a Citus cluster, without a time limit. */
  async moveBucket(bucket: string, node: string) {
    const client = await this.#connect(0)
    try {
      await moveBucketSchema(client, bucket, node)
    } finally {
      await client.end()
    }
  }

  /** Opens a connection outside the pool, which does not wait for one of the pool. */
  async #connect(queryTimeout = this.options.deadline + CONNECT_TIMEOUT_MS): Promise<pg.Client> {
    const { url } = this.options
    const client = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: queryTimeout,
      keepAlive: true,
      pipeline: true,
    })
    client.on('error', () => {}) // the next query fails with it
    await client.connect().catch((error) => {
      throw new Busy(error)
    })
    return client
  }

  /** Returns the settings of a transaction. They end with it, so connections may come from a pooler. */
  #startStatements(bucket: string, tenant: string) {
    const { deadline } = this.options
    return `${this.#hasCitus ? PROPAGATE_LOCAL_SQL : ''}set local role ${TENANT_ROLE}; set local search_path to ${pg.escapeIdentifier(bucket)};
      set local app.tenant to ${pg.escapeLiteral(tenant)}; set local statement_timeout to ${deadline}`
  }

  async #migrate(bucket: string, migrations: string[]) {
    const migrated =
      this.#migrated.get(bucket) ?? this.#withConnection((client) => this.#migrateBucket(client, bucket, migrations))
    this.#migrated.set(bucket, migrated)
    await migrated.catch((error) => {
      this.#migrated.delete(bucket)
      throw error
    })
  }

  async #migrateBucket(client: pg.PoolClient, bucket: string, migrations: string[]) {
    await migrateBucket(client, bucket, migrations)
    this.#hasCitus = await hasCitus(client)
  }

  /** Runs reads in one transaction, whose statements are sent together: one round trip over the network. */
  async #runReads(start: string, reads: ReadQuery[], mayRetry = true): Promise<PromiseSettledResult<unknown[][]>[]> {
    try {
      return await this.#withConnection(async (client) => {
        const started = client.query(`begin isolation level repeatable read read only; ${start}`)
        const results = reads.map(({ sql, params }) => runQuery(client, sql, params))
        const ended = client.query('commit')
        const [[begin], settled] = await Promise.all([
          Promise.allSettled([started, ended]),
          Promise.allSettled(results),
        ])
        if (begin.status === 'rejected') throw begin.reason
        const aborted = settled.find((read) => read.status === 'rejected' && read.reason instanceof TransactionAborted)
        if (aborted?.status === 'rejected') throw aborted.reason
        return settled
      })
    } catch (error) {
      // Reads can safely be repeated.
      if (mayRetry && error instanceof TransactionAborted) return this.#runReads(start, reads, false)
      throw error
    }
  }

  /** Repeats a transaction that the database aborted before it was committed. */
  async #retryTransaction(start: string, work: (executor: Executor) => Promise<void>) {
    const until = performance.now() + this.options.deadline
    for (let attempt = 1; ; attempt++)
      try {
        return await this.#runTransaction(start, work)
      } catch (error) {
        if (!(error instanceof TransactionAborted) || attempt === MAX_TRANSACTION_ATTEMPTS || performance.now() > until)
          throw error
      }
  }

  async #runTransaction(start: string, work: (executor: Executor) => Promise<void>) {
    const key = crypto.randomUUID()
    let isCommitting = false
    try {
      await this.#withConnection(async (client) => {
        try {
          await beginTransaction(client, start)
          await work({
            query: (sql, params) => runQuery(client, sql, params),
            executeMany: (sql, rows) => runMany(client, sql, rows),
          })
          isCommitting = true
          const commitNote = client.query(`insert into commits (key) values ('${key}')`)
          // The next clean-up removes the rest.
          if (++this.#commits % COMMITS_PER_CLEANUP === 0) client.query(CLEANUP_SQL).catch(() => {})
          const [, { command }] = await Promise.all([commitNote, client.query('commit')])
          // PostgreSQL answers the COMMIT of a failed transaction with a rollback, without an error.
          if (command !== 'COMMIT') throw new Error('The transaction had already failed.')
        } catch (error) {
          await client.query('rollback').catch(() => {}) // the first error counts
          throw error
        }
      })
    } catch (error) {
      if (isCommitting && error instanceof TransactionAborted && (await this.#isCommitted(start, key))) return
      throw error
    }
  }

  /**
   * Tells whether a transaction whose COMMIT got no answer was committed. The tenant's lock ensures that it is over.
   */
  async #isCommitted(start: string, key: string) {
    return this.#withConnection(async (client) => {
      try {
        await beginTransaction(client, start)
        const { rowCount } = await client.query(`select from commits where key = '${key}'`)
        return !!rowCount
      } finally {
        await client.query('rollback').catch(() => {}) // the connection is closed if it is broken
      }
    })
  }

  /** Runs work with a connection of the pool. A connection that failed is not used again. */
  async #withConnection<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect().catch((error) => {
      throw new Busy(error)
    })
    let broken: Error | undefined
    try {
      return await work(client)
    } catch (error) {
      const translated = toStorageError(error)
      if (translated instanceof TransactionAborted) broken = translated
      throw translated
    } finally {
      client.release(broken)
    }
  }
}

/** @throws when the tenant's lock, the last of the start statements, is missing: the tenant was ended or moved */
async function beginTransaction(client: pg.PoolClient, start: string) {
  // Databases may default to a stricter level, whose snapshot could be from before the lock was taken.
  const results = (await client.query(`begin isolation level read committed; ${start}`)) as unknown as pg.QueryResult[]
  const last = results.at(-1)!
  if (last.command === 'SELECT' && !last.rowCount) assertServed(await runQuery(client, SELECT_SERVED_SQL))
}

const SELECT_SERVED_SQL = 'select ended, moved from tenant_lock'

/** @throws 503 BUSY when the tenant was moved, 404 TENANT_NOT_FOUND when it was ended */
function assertServed([row = []]: unknown[][]) {
  const [ended, moved] = row
  if (ended === null) return
  if (typeof moved === 'string') throw new TenantMoved(moved)
  notFound('tenant')
}
