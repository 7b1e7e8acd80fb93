import pg from 'pg'
import type { CommitCounters } from '../../commit-counters'
import { Busy, DatabaseDamaged } from '../../errors'
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
import { BatchInserts } from './batch-insert'
import { migrateBucket, readBucketVersion, TENANT_ROLE } from './buckets'
import { hasCitus, moveBucketSchema, PROPAGATE_LOCAL_SQL } from './citus'
import { claimName, isNameClaimed } from './name-claim'
import { NotifyListener } from './notify-listener'
import type { BucketStatements } from './query'
import { ReadBatcher, ReadShares } from './read-batcher'
import { allowPreparedStatements, Statements } from './statement-group'
import { openTenantCopy } from './tenant-copy'
import { assertServed, type ReadsStart, SELECT_SERVED_SQL, type TransactionStart, Transactions } from './transactions'

export type PostgresOptions = {
  url: string
  /** The time limit of a statement, in ms. */
  deadline: number
  /** The most connections of the pool. */
  connections: number
  /** Whether a commit does not wait for the disk of the server (default: it waits, if the server is configured so). */
  isCommitFast?: boolean
  /** Counts the commits, and what other processes report, for reader threads. */
  commitCounters?: CommitCounters
  /** Whether this is a reader thread: the main thread counts for it what others write. */
  isReaderThread?: boolean
}

for (const bigintOrNumeric of [20, 1700]) pg.types.setTypeParser(bigintOrNumeric, Number)
for (const json of [114, 3802]) pg.types.setTypeParser(json, String) // JSON is written as text, and read as text

const CONNECT_TIMEOUT_MS = 1_500 // a longer wait for a connection is 503 BUSY
// The planner expects few rows of a tenant (`isolate.sql`). With bitmap scans, it would read and sort all of them where an
// index has the first thousand in order.
const DISABLE_BITMAP_SCANS_SQL = 'set local enable_bitmapscan to off'
// The same as `#startStatements`, in one statement that a connection can prepare.
const SETTINGS_SQL = `select set_config('role', $1, true), set_config('search_path', $2, true),
  set_config('app.tenant', $3, true), set_config('statement_timeout', $4, true), set_config('enable_bitmapscan', 'off', true)`
// To plan a plain list anew takes as long as to read it. Other reads are planned with their values.
const READ_SETTINGS_SQL = `${SETTINGS_SQL}, set_config('transaction_read_only', 'on', true),
  set_config('plan_cache_mode', $5, true)`
const WRITE_SETTINGS_SQL = `${SETTINGS_SQL}, set_config('lock_timeout', $4, true),
  set_config('idle_in_transaction_session_timeout', $5, true)`
const FAST_COMMIT_SQL = "select set_config('synchronous_commit', 'off', true)"
// A row, unlike an advisory lock, is locked on the node that has the bucket. The policy selects the tenant's own row. With
// the lock comes whether changes are being captured.
const LOCK_SQL = `select set_config('app.followed', case when followed > now() then 'yes' else 'no' end, true)
  from (select followed from tenant_lock where ended is null for update) as lock`
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
  #transactions: Transactions
  #migrated = new Map<string, Promise<void>>()
  #listener: NotifyListener
  #autoAnalyze: AutoAnalyze
  #readShares: ReadShares
  #hasCitus = false
  #statements = new Map<string, BucketStatements>()

  constructor(private options: PostgresOptions) {
    const { url, deadline, connections, commitCounters } = options
    this.#listener = new NotifyListener(url, (tenant) => commitCounters?.add(tenant))
    this.#pool = new pg.Pool({
      connectionString: url,
      max: connections,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      // A query to a silent server fails, and its connection is closed.
      query_timeout: deadline + CONNECT_TIMEOUT_MS,
      keepAlive: true,
      pipeline: true,
      onConnect: allowPreparedStatements,
    })
    this.#transactions = new Transactions(this.#pool, deadline)
    this.#readShares = new ReadShares(connections)
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
    const bucketStatements = this.#statementsOf(bucket)
    const { statements } = bucketStatements
    const open = async ({ query }: Executor) => {
      if (!place.exists) await query('insert into tenant_lock default values on conflict do nothing')
      const rows = await query(SELECT_SERVED_SQL)
      if (!rows.length)
        throw new DatabaseDamaged(undefined, `The rows of this tenant are missing in the schema "${bucket}".`)
      assertServed(rows)
    }
    await this.#transactions.run(start, open, bucketStatements)
    const settings = [TENANT_ROLE, pg.escapeIdentifier(bucket), tenant, `${this.options.deadline}`]
    const toGroup = (...group: [sql: string, params: unknown[]][]) =>
      group.map(([sql, params]) => ({ statement: statements.of(sql), params }))
    const idleTimeout = this.options.deadline + CONNECT_TIMEOUT_MS
    const startWrite: TransactionStart = this.#hasCitus
      ? {
          text: `${start.text}; set local lock_timeout to ${this.options.deadline};
            set local idle_in_transaction_session_timeout to ${idleTimeout}; ${LOCK_SQL}`,
        }
      : {
          group: toGroup(
            [WRITE_SETTINGS_SQL, [...settings, `${idleTimeout}`]],
            ...(this.options.isCommitFast ? [[FAST_COMMIT_SQL, []] as [string, unknown[]]] : []),
            [LOCK_SQL, []],
          ),
        }
    const startReads: ReadsStart = this.#hasCitus
      ? start
      : {
          group: toGroup([READ_SETTINGS_SQL, [...settings, 'force_custom_plan']]),
          plain: toGroup([READ_SETTINGS_SQL, [...settings, 'force_generic_plan']]),
        }
    const reads = new ReadBatcher(tenant, this.#readShares, (questions) =>
      this.#transactions.runReads(startReads, questions, statements),
    )
    return {
      query: reads.query,
      transaction: async (work, onVisible) => {
        const written = await this.#transactions.runWithRetries(startWrite, work, bucketStatements)
        onVisible?.()
        this.options.commitCounters?.add(tenant)
        this.#autoAnalyze.recordRows(bucket, tenant, written)
        return {}
      },
      close: async () => {},
    }
  }

  async close() {
    await Promise.all([this.#listener.close(), this.#pool.end()])
  }

  remoteVersion(place: DatabaseLocation) {
    const { commitCounters, isReaderThread } = this.options
    const tenant = tenantIdOf(place)
    return isReaderThread && commitCounters
      ? commitCounters.countOfOthers(tenant)
      : this.#listener.remoteVersion(tenant)
  }

  /** Counts the connections that run statements, those that are idle, and the work that waits for one. */
  countConnections() {
    const { totalCount, idleCount, waitingCount } = this.#pool
    return { busy: totalCount - idleCount, idle: idleCount, waiting: waitingCount }
  }

  /** Returns the version of the server, and whether it runs Citus. @throws 503 BUSY when it cannot be reached */
  async getServerInfo() {
    return this.#transactions.withConnection(async (client) => {
      const { rows } = await client.query(
        "select current_setting('server_version') as server, exists (select from pg_extension where extname = 'citus') as citus",
      )
      return rows[0] as { server: string; citus: boolean }
    })
  }

  readSchemaVersion(place: DatabaseLocation): Promise<number> {
    const { bucket } = requireBucket(place)
    return this.#transactions.withConnection((client) => readBucketVersion(client, bucket))
  }

  async retire(place: DatabaseLocation, { postgres: migrations }: Migrations) {
    const { bucket, tenant } = requireBucket(place)
    await this.#migrate(bucket, migrations)
    const end = async ({ query }: Executor) => {
      await query('insert into tenant_lock default values on conflict do nothing')
      await query('update tenant_lock set ended = ?, moved = null', [Date.now()])
    }
    await this.#transactions.run(this.#startStatements(bucket, tenant), end, this.#statementsOf(bucket))
  }

  async openTenantCopy(place: DatabaseLocation, { postgres: migrations }: Migrations): Promise<TenantCopyConnection> {
    const { bucket, tenant } = requireBucket(place)
    await this.#migrate(bucket, migrations)
    return openTenantCopy(await this.#connect(), this.#startStatements(bucket, tenant).text)
  }

  /** Returns undefined when another process has claimed the name. */
  async claim(name: string): Promise<NameClaim | undefined> {
    return claimName(await this.#connect(), name)
  }

  /** Returns whether a process has claimed a name. */
  isClaimed(name: string): Promise<boolean> {
    return this.#transactions.withConnection((client) => isNameClaimed(client, name))
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
    const text = `${this.#hasCitus ? PROPAGATE_LOCAL_SQL : ''}set local role ${TENANT_ROLE}; set local search_path to ${pg.escapeIdentifier(bucket)};
      set local app.tenant to ${pg.escapeLiteral(tenant)}; set local statement_timeout to ${deadline}; ${DISABLE_BITMAP_SCANS_SQL}`
    return { text }
  }

  #statementsOf(bucket: string): BucketStatements {
    const existing = this.#statements.get(bucket)
    if (existing) return existing
    const created = { statements: new Statements(), inserts: new BatchInserts() }
    this.#statements.set(bucket, created)
    return created
  }

  async #migrate(bucket: string, migrations: string[]) {
    const migrated =
      this.#migrated.get(bucket) ??
      this.#transactions.withConnection((client) => this.#migrateBucket(client, bucket, migrations))
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
}
