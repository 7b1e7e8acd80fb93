import type pg from 'pg'
import { notFound } from '../../../core/problem'
import { Busy, TenantMoved, TransactionAborted, toStorageError } from '../../errors'
import type { Executor } from '../../port'
import type { WrittenRows } from './auto-analyze'
import { type BucketStatements, runMany, runQuery, writtenTable } from './query'
import type { ReadQuery } from './read-batcher'
import { type GroupedStatement, runGroup, type Statements } from './statement-group'
import { StatementQueue } from './statement-queue'

const MAX_TRANSACTION_ATTEMPTS = 3
const COMMITS_PER_CLEANUP = 500
const CLEANUP_SQL = "delete from commits where made < now() - interval '1 hour'"

/** The statements that select the tenant of a transaction, or their text where no function can set this. */
export type TransactionStart = { group: GroupedStatement[] } | { text: string }

/** The start of a transaction of reads; `plain` is for those whose statements are all plain. */
export type ReadsStart = { group: GroupedStatement[]; plain: GroupedStatement[] } | { text: string }

const INSERT_COMMIT_SQL = 'insert into commits (key) values ($1)'

/** Runs transactions on the connections of a pool. Each begins with `start`, the statements that select a tenant. */
export class Transactions {
  #commits = 0

  /** @param deadline how long an aborted transaction is repeated (ms) */
  constructor(
    private pool: pg.Pool,
    private deadline: number,
  ) {}

  /** Runs reads in one transaction, whose statements are sent together: one round trip over the network. */
  async runReads(
    start: ReadsStart,
    reads: ReadQuery[],
    statements: Statements,
    mayRetry = true,
  ): Promise<PromiseSettledResult<unknown[][]>[]> {
    const asked = reads.map(({ sql, params }) => ({ statement: statements.translate(sql), params }))
    try {
      return await this.withConnection(async (client) => {
        const isPlain = asked.every(({ statement }) => statement.isPlain)
        const before = 'group' in start ? (isPlain ? start.plain : start.group) : []
        const { results, error } = await ('group' in start
          ? runGroup(client, [...before, ...asked])
          : runBetween(client, `begin isolation level read committed read only; ${start.text}`, asked))
        const read = results.slice(before.length)
        if (!error) return read.map(({ rows }) => ({ status: 'fulfilled', value: rows }))
        const reason = toStorageError(error)
        if (reason instanceof TransactionAborted || results.length < before.length) throw reason
        return asked.map((_, n) =>
          n < read.length ? { status: 'fulfilled', value: read[n]!.rows } : { status: 'rejected', reason },
        )
      })
    } catch (error) {
      // Reads can safely be repeated.
      if (mayRetry && error instanceof TransactionAborted) return this.runReads(start, reads, statements, false)
      throw error
    }
  }

  /**
   * Runs a transaction, and repeats it when the database aborted it before it was committed. Returns how many rows it
   * wrote.
   */
  async runWithRetries(
    start: TransactionStart,
    work: (executor: Executor) => Promise<void>,
    statements: BucketStatements,
  ): Promise<WrittenRows> {
    const until = performance.now() + this.deadline
    for (let attempt = 1; ; attempt++)
      try {
        return await this.run(start, work, statements)
      } catch (error) {
        if (!(error instanceof TransactionAborted) || attempt === MAX_TRANSACTION_ATTEMPTS || performance.now() > until)
          throw error
      }
  }

  /**
   * Runs a transaction, and returns how many rows it wrote.
   * @throws TransactionAborted when nothing was committed
   */
  async run(
    start: TransactionStart,
    work: (executor: Executor) => Promise<void>,
    statements: BucketStatements,
  ): Promise<WrittenRows> {
    const key = crypto.randomUUID()
    const written: WrittenRows = new Map()
    const countRows = (sql: string, rows: number) => {
      const table = rows && writtenTable(sql)
      if (table) written.set(table, (written.get(table) ?? 0) + rows)
    }
    let isCommitting = false
    try {
      await this.withConnection(async (client) => {
        const queue = new StatementQueue(client)
        try {
          await beginTransaction(client, start)
          await work({
            isRemote: true,
            async query(sql, params) {
              const result = await queue.run(statements.statements.translate(sql), params)
              countRows(sql, result.written)
              return result.rows
            },
            executeMany(sql, rows) {
              countRows(sql, rows.length)
              return runMany(client, sql, rows, statements, queue.run)
            },
          })
          isCommitting = true
          const [, { command }] = await sendTogether(client, () => {
            const commitNote = queue.run(statements.statements.of(INSERT_COMMIT_SQL), [key])
            queue.send()
            queue.end()
            // The next clean-up removes the rest.
            if (++this.#commits % COMMITS_PER_CLEANUP === 0) client.query(CLEANUP_SQL).catch(() => {})
            return Promise.all([commitNote, client.query('commit')])
          })
          // PostgreSQL answers the COMMIT of a failed transaction with a rollback, without an error.
          if (command !== 'COMMIT') throw new Error('The transaction had already failed.')
        } catch (error) {
          queue.end()
          await client.query('rollback').catch(() => {}) // the first error counts
          throw error
        }
      })
    } catch (error) {
      if (!(isCommitting && error instanceof TransactionAborted && (await this.#isCommitted(start, key)))) throw error
    }
    return written
  }

  /**
   * Tells whether a transaction whose COMMIT got no answer was committed. The tenant's lock ensures that it is over.
   * @throws 503 BUSY when that cannot be found out; then the transaction must not be repeated
   */
  async #isCommitted(start: TransactionStart, key: string): Promise<boolean> {
    for (let attempt = 1; ; attempt++)
      try {
        return await this.withConnection(async (client) => {
          try {
            await beginTransaction(client, start)
            const { rowCount } = await client.query(`select from commits where key = '${key}'`)
            return !!rowCount
          } finally {
            await client.query('rollback').catch(() => {}) // the connection is closed if it is broken
          }
        })
      } catch (error) {
        if (!(error instanceof TransactionAborted)) throw error
        if (attempt === MAX_TRANSACTION_ATTEMPTS) throw new Busy(error)
      }
  }

  /** Runs work with a connection of the pool. A connection that failed is not used again. */
  async withConnection<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.pool.connect().catch((error) => {
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

/** Runs statements in one message, in a transaction that begins with text. */
async function runBetween(client: pg.PoolClient, begin: string, statements: GroupedStatement[]) {
  const [started, group] = await sendTogether(client, () =>
    Promise.allSettled([client.query(begin), runGroup(client, statements), client.query('commit')]),
  )
  if (started.status === 'rejected') throw started.reason
  if (group.status === 'rejected') throw group.reason
  return group.value
}

/** Sends all statements that `send` begins in one piece: the server wakes up once, instead of once for each. */
function sendTogether<T>(client: pg.PoolClient, send: () => T): T {
  // The types of a pool's client lack its connection.
  const { stream } = (client as unknown as pg.Client).connection
  stream.cork()
  try {
    return send()
  } finally {
    stream.uncork()
  }
}

/** @throws when the tenant's lock, the last of the start statements, is missing: the tenant was ended or moved */
async function beginTransaction(client: pg.PoolClient, start: TransactionStart) {
  // Databases may default to a stricter level, whose snapshot could be from before the lock was taken.
  const begin = 'begin isolation level read committed'
  if (await ('group' in start ? isBegun(client, begin, start.group) : isBegunByText(client, `${begin}; ${start.text}`)))
    return
  assertServed(await runQuery(client, SELECT_SERVED_SQL))
  // It came back between the two statements. Nothing may be written without the lock.
  throw new TransactionAborted('The tenant was not locked.')
}

async function isBegun(client: pg.PoolClient, begin: string, group: GroupedStatement[]): Promise<boolean> {
  const [, { results, error }] = await sendTogether(client, () =>
    Promise.all([client.query(begin), runGroup(client, group)]),
  )
  if (error) throw error
  return results.at(-1)!.rows.length > 0
}

async function isBegunByText(client: pg.PoolClient, text: string): Promise<boolean> {
  const results = await client.query(text)
  const last = [results].flat().at(-1)! // `pg` returns a list for several statements
  return last.command !== 'SELECT' || !!last.rowCount
}

/** Selects what `assertServed` checks. */
export const SELECT_SERVED_SQL = 'select ended, moved from tenant_lock'

/** @throws 503 BUSY when the tenant was moved, 404 TENANT_NOT_FOUND when it was ended */
export function assertServed([row = []]: unknown[][]) {
  const [ended, moved] = row
  if (ended === null) return
  if (typeof moved === 'string') throw new TenantMoved(moved)
  notFound('tenant')
}
