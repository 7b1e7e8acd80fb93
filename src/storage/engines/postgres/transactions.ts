import type pg from 'pg'
import { notFound } from '../../../core/problem'
import { Busy, TenantMoved, TransactionAborted, toStorageError } from '../../errors'
import type { Executor } from '../../port'
import type { WrittenRows } from './auto-analyze'
import type { BatchInserts } from './batch-insert'
import { runMany, runQuery, runStatement, writtenTable } from './query'
import type { ReadQuery } from './read-batcher'

const MAX_TRANSACTION_ATTEMPTS = 3
const COMMITS_PER_CLEANUP = 500
const CLEANUP_SQL = "delete from commits where made < now() - interval '1 hour'"

/** Runs transactions on the connections of a pool. Each begins with `start`, the statements that select a tenant. */
export class Transactions {
  #commits = 0

  /** @param deadline how long an aborted transaction is repeated (ms) */
  constructor(
    private pool: pg.Pool,
    private deadline: number,
  ) {}

  /** Runs reads in one transaction, whose statements are sent together: one round trip over the network. */
  async runReads(start: string, reads: ReadQuery[], mayRetry = true): Promise<PromiseSettledResult<unknown[][]>[]> {
    try {
      return await this.withConnection(async (client) => {
        const { started, results, ended } = sendTogether(client, () => ({
          started: client.query(`begin isolation level repeatable read read only; ${start}`),
          results: reads.map(({ sql, params }) => runQuery(client, sql, params)),
          ended: client.query('commit'),
        }))
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
      if (mayRetry && error instanceof TransactionAborted) return this.runReads(start, reads, false)
      throw error
    }
  }

  /**
   * Runs a transaction, and repeats it when the database aborted it before it was committed. Returns how many rows it
   * wrote.
   */
  async runWithRetries(
    start: string,
    work: (executor: Executor) => Promise<void>,
    inserts: BatchInserts,
  ): Promise<WrittenRows> {
    const until = performance.now() + this.deadline
    for (let attempt = 1; ; attempt++)
      try {
        return await this.run(start, work, inserts)
      } catch (error) {
        if (!(error instanceof TransactionAborted) || attempt === MAX_TRANSACTION_ATTEMPTS || performance.now() > until)
          throw error
      }
  }

  /**
   * Runs a transaction, and returns how many rows it wrote.
   * @throws TransactionAborted when nothing was committed
   */
  async run(start: string, work: (executor: Executor) => Promise<void>, inserts?: BatchInserts): Promise<WrittenRows> {
    const key = crypto.randomUUID()
    const written: WrittenRows = new Map()
    const countRows = (sql: string, rows: number) => {
      const table = rows && writtenTable(sql)
      if (table) written.set(table, (written.get(table) ?? 0) + rows)
    }
    let isCommitting = false
    try {
      await this.withConnection(async (client) => {
        try {
          await beginTransaction(client, start)
          await work({
            async query(sql, params) {
              const result = await runStatement(client, sql, params)
              countRows(sql, result.written)
              return result.rows
            },
            executeMany(sql, rows) {
              countRows(sql, rows.length)
              return runMany(client, sql, rows, inserts)
            },
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
      if (!(isCommitting && error instanceof TransactionAborted && (await this.#isCommitted(start, key)))) throw error
    }
    return written
  }

  /**
   * Tells whether a transaction whose COMMIT got no answer was committed. The tenant's lock ensures that it is over.
   * @throws 503 BUSY when that cannot be found out; then the transaction must not be repeated
   */
  async #isCommitted(start: string, key: string): Promise<boolean> {
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
async function beginTransaction(client: pg.PoolClient, start: string) {
  // Databases may default to a stricter level, whose snapshot could be from before the lock was taken.
  const results = await client.query(`begin isolation level read committed; ${start}`)
  const last = [results].flat().at(-1)! // several statements have a list of results
  if (last.command !== 'SELECT' || last.rowCount) return
  assertServed(await runQuery(client, SELECT_SERVED_SQL))
  // It came back between the two statements. Nothing may be written without the lock.
  throw new TransactionAborted('The tenant was not locked.')
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
