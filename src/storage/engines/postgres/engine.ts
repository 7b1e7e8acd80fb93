import pg from 'pg'
import { missing } from '../../../core/problem'
import { Busy, Damaged, Interrupted, Moved, storageError } from '../../errors'
import type { Asking, Bulk, Claim, Database, Engine, Migrations, Place } from '../../port'
import { ask, each } from './asking'
import { migrate, ROLE } from './buckets'
import { openBulk } from './bulk'
import { isThere, LOCAL, moveSchema } from './citus'
import { Listener } from './listener'
import { type Question, Reads } from './reads'
import { Statistics } from './statistics'

export type PostgresOptions = {
  url: string
  /** How long a statement may run, in ms. */
  deadline: number
  /** How many connections at most. */
  connections: number
}

for (const bigintOrNumeric of [20, 1700]) pg.types.setTypeParser(bigintOrNumeric, Number)
for (const json of [114, 3802]) pg.types.setTypeParser(json, String) // what is kept as text is read as text

const CONNECT = 1_500 // ms; who waits longer for a connection is told to come back
const ATTEMPTS = 3
const TIDY = 500 // commits
const TIDYING = "delete from commits where made < now() - interval '1 hour'"
const NOBODY = '00000000-0000-0000-0000-000000000000'

/** Whose rows they are, in a bucket. */
const tenantOf = ({ identity }: Place) => identity || NOBODY

function homeOf(place: Place) {
  if (!place.bucket) throw new Error('A place in PostgreSQL has a bucket.')
  return { bucket: place.bucket, tenant: tenantOf(place) }
}

/** Tenants share the tables of a bucket, which is a schema; row-level security keeps their rows apart. */
export class Postgres implements Engine {
  #pool: pg.Pool
  #migrated = new Map<string, Promise<void>>()
  #listener: Listener
  #statistics: Statistics
  #commits = 0
  #citus = false

  constructor(private options: PostgresOptions) {
    const { url, deadline, connections } = options
    this.#listener = new Listener(url)
    this.#pool = new pg.Pool({
      connectionString: url,
      max: connections,
      connectionTimeoutMillis: CONNECT,
      // A server that has gone silent is not waited for: the connection is given up.
      query_timeout: deadline + CONNECT,
      keepAlive: true,
      pipeline: true,
    })
    this.#statistics = new Statistics(this.#pool)
    // Whoever uses a broken connection hears of it anyway, but if nobody listened it would end the process.
    this.#pool.on('error', () => {}).on('connect', (client) => client.on('error', () => {}))
  }

  /** @throws 404 for a tenant that was ended, Damaged when its rows are missing, though they exist */
  async open(place: Place, { postgres: migrations }: Migrations): Promise<Database> {
    const { bucket, tenant } = homeOf(place)
    await this.#migrate(bucket, migrations)
    const start = this.#start(bucket, tenant)
    await this.#attempt(start, async ({ ask }) => {
      if (!place.exists) await ask('insert into tenant_lock default values on conflict do nothing')
      const rows = await ask(SERVED)
      if (!rows.length) throw new Damaged(undefined, `The rows of this tenant are missing in the schema "${bucket}".`)
      requireServed(rows)
    })
    // A row, unlike an advisory lock, is locked on the node that has the bucket. The policy picks our own. Who waited for
    // it knows by it whether somebody follows the changes.
    const alone = `${start}; set local lock_timeout to ${this.options.deadline};
      set local idle_in_transaction_session_timeout to ${this.options.deadline + CONNECT};
      select set_config('app.followed', case when followed > now() then 'yes' else 'no' end, true)
        from (select followed from tenant_lock where ended is null for update) as lock`
    const reads = new Reads((questions) => this.#read(start, questions))
    return {
      ask: reads.ask,
      transaction: async (work) => {
        let rows = 0
        await this.#transaction(alone, ({ ask, each }) =>
          work({
            ask: (sql, params) => {
              rows++
              return ask(sql, params)
            },
            each: (sql, list) => {
              rows += list.length
              return each(sql, list)
            },
          }),
        )
        this.#statistics.wrote(bucket, tenant, rows)
        return {}
      },
      close: async () => {},
    }
  }

  async close() {
    await Promise.all([this.#listener.close(), this.#pool.end()])
  }

  heard(place: Place) {
    return this.#listener.heard(tenantOf(place))
  }

  /** What the cluster runs. @throws 503 when it cannot be reached */
  async state() {
    return this.#use(async (client) => {
      const { rows } = await client.query(
        "select current_setting('server_version') as server, exists (select from pg_extension where extname = 'citus') as citus",
      )
      return rows[0] as { server: string; citus: boolean }
    })
  }

  async end(place: Place, { postgres: migrations }: Migrations) {
    const { bucket, tenant } = homeOf(place)
    await this.#migrate(bucket, migrations)
    await this.#attempt(this.#start(bucket, tenant), async ({ ask }) => {
      await ask('insert into tenant_lock default values on conflict do nothing')
      await ask('update tenant_lock set ended = ?, moved = null', [Date.now()])
    })
  }

  async bulk(place: Place, { postgres: migrations }: Migrations): Promise<Bulk> {
    const { bucket, tenant } = homeOf(place)
    await this.#migrate(bucket, migrations)
    return openBulk(await this.#connect(), this.#start(bucket, tenant))
  }

  /** Undefined when another process has claimed the name. */
  async claim(name: string): Promise<Claim | undefined> {
    const client = await this.#connect()
    // By a transaction that stays open, because poolers may give a connection away after each.
    await client.query('begin; set local idle_in_transaction_session_timeout to 0')
    const { rows } = await client.query('select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as got', [name])
    if (rows[0].got)
      return { require: async () => void (await ask(client, 'select 1')), [Symbol.asyncDispose]: () => client.end() }
    await client.end()
  }

  /** Moves a bucket to another node of a Citus cluster, which takes as long as it takes. */
  async moveBucket(bucket: string, node: string) {
    const client = await this.#connect(0)
    try {
      await moveSchema(client, bucket, node)
    } finally {
      await client.end()
    }
  }

  /** A connection of its own, which the many that wait for one of the pool are not in the way of. */
  async #connect(patience = this.options.deadline + CONNECT): Promise<pg.Client> {
    const { url } = this.options
    const client = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: CONNECT,
      query_timeout: patience,
      keepAlive: true,
      pipeline: true,
    })
    client.on('error', () => {}) // whoever asks it next hears of it
    await client.connect().catch((error) => {
      throw new Busy(error)
    })
    return client
  }

  /** All of it ends with the transaction, so that a connection pooler may stand between us and the server. */
  #start(bucket: string, tenant: string) {
    const { deadline } = this.options
    return `${this.#citus ? LOCAL : ''}set local role ${ROLE}; set local search_path to ${pg.escapeIdentifier(bucket)};
      set local app.tenant to ${pg.escapeLiteral(tenant)}; set local statement_timeout to ${deadline}`
  }

  async #migrate(bucket: string, migrations: string[]) {
    const migrated = this.#migrated.get(bucket) ?? this.#use((client) => this.#prepare(client, bucket, migrations))
    this.#migrated.set(bucket, migrated)
    await migrated.catch((error) => {
      this.#migrated.delete(bucket)
      throw error
    })
  }

  async #prepare(client: pg.PoolClient, bucket: string, migrations: string[]) {
    await migrate(client, bucket, migrations)
    this.#citus = await isThere(client)
  }

  /** Sent together and answered in order: one trip over the network. */
  async #read(start: string, questions: Question[], again = true): Promise<PromiseSettledResult<unknown[][]>[]> {
    try {
      return await this.#use(async (client) => {
        const begun = client.query(`begin isolation level repeatable read read only; ${start}`)
        const answers = questions.map(({ sql, params }) => ask(client, sql, params))
        const ended = client.query('commit')
        const [[begin], settled] = await Promise.all([Promise.allSettled([begun, ended]), Promise.allSettled(answers)])
        if (begin.status === 'rejected') throw begin.reason
        const lost = settled.find((one) => one.status === 'rejected' && one.reason instanceof Interrupted)
        if (lost?.status === 'rejected') throw lost.reason
        return settled
      })
    } catch (error) {
      // Reading does no harm twice.
      if (again && error instanceof Interrupted) return this.#read(start, questions, false)
      throw error
    }
  }

  /** Again, when the database gave up on it before it was committed. */
  async #transaction(start: string, work: (asking: Asking) => Promise<void>) {
    const until = performance.now() + this.options.deadline
    for (let attempt = 1; ; attempt++)
      try {
        return await this.#attempt(start, work)
      } catch (error) {
        if (!(error instanceof Interrupted) || attempt === ATTEMPTS || performance.now() > until) throw error
      }
  }

  async #attempt(start: string, work: (asking: Asking) => Promise<void>) {
    const key = crypto.randomUUID()
    let committing = false
    try {
      await this.#use(async (client) => {
        try {
          await begin(client, start)
          await work({ ask: (sql, params) => ask(client, sql, params), each: (sql, rows) => each(client, sql, rows) })
          committing = true
          const noted = client.query(`insert into commits (key) values ('${key}')`)
          if (++this.#commits % TIDY === 0) client.query(TIDYING).catch(() => {})
          const [, { command }] = await Promise.all([noted, client.query('commit')])
          // PostgreSQL answers the COMMIT of a failed transaction by a rollback, without an error.
          if (command !== 'COMMIT') throw new Error('The transaction had failed before.')
        } catch (error) {
          await client.query('rollback').catch(() => {})
          throw error
        }
      })
    } catch (error) {
      if (committing && error instanceof Interrupted && (await this.#committed(start, key))) return
      throw error
    }
  }

  /** Whether a transaction whose end was not heard was committed. Its lock is taken first: then it is over. */
  async #committed(start: string, key: string) {
    return this.#use(async (client) => {
      try {
        await begin(client, start)
        const { rowCount } = await client.query(`select from commits where key = '${key}'`)
        return !!rowCount
      } finally {
        await client.query('rollback').catch(() => {})
      }
    })
  }

  /** A connection for a while. One that failed is not used again. */
  async #use<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect().catch((error) => {
      throw new Busy(error)
    })
    let broken: Error | undefined
    try {
      return await work(client)
    } catch (error) {
      const told = storageError(error)
      if (told instanceof Interrupted) broken = told
      throw told
    } finally {
      client.release(broken)
    }
  }
}

/** @throws when the lock that the statements ask for last is not there: the tenant was ended. */
async function begin(client: pg.PoolClient, start: string) {
  // In one snapshot, as a database may have it by default, what is read after the lock could be from before.
  const results = (await client.query(`begin isolation level read committed; ${start}`)) as unknown as pg.QueryResult[]
  const last = results.at(-1)!
  if (last.command === 'SELECT' && !last.rowCount) requireServed(await ask(client, SERVED))
}

const SERVED = 'select ended, moved from tenant_lock'

/** @throws 503 when the tenant was moved elsewhere, 404 when it was ended */
function requireServed([row = []]: unknown[][]) {
  const [ended, moved] = row
  if (ended === null) return
  if (typeof moved === 'string') throw new Moved(moved)
  missing('tenant')
}
