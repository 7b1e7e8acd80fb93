import { notFound } from '../../../core/problem'
import { Busy, DatabaseDamaged, DiskFailure, TenantMoved, toStorageError } from '../../errors'
import type { ExecuteMany, Executor, RunQuery } from '../../port'
import { batchInserts } from './batch-insert'
import type { SqliteConnection, SqliteStatement } from './drivers'

const MAX_PREPARED_STATEMENTS = 500 // preparing a statement costs ten times what running it does

/** Returns the mark of a file whose tenant was ended or moved. */
export const toMovedMark = (mark: number) => ~mark

/** A connection that keeps the latest statements prepared. */
export class CachedConnection {
  /** How many connections this thread has open. */
  static openCount = 0
  #statements = new Map<string, SqliteStatement>()
  /** Whether an operation failed because of the disk. */
  hasDiskFailed = false
  /** How many statements were run so far, weighted by the pages they write. */
  statementCount = 0

  constructor(
    private connection: SqliteConnection,
    private lockTimeout: number,
  ) {
    CachedConnection.openCount++
  }

  execute(sql: string) {
    try {
      this.connection.exec(sql)
    } catch (error) {
      throw this.#toError(error)
    }
  }

  /** Runs a statement, and repeats it while another process has the file locked, such as one that is closing it. */
  executePatiently = (sql: string) => this.#retryWhileBusy(async () => this.execute(sql))

  query: RunQuery = async (sql, params) => this.querySync(sql, params)

  /** Runs a statement synchronously and returns its rows. */
  querySync(sql: string, params: unknown[] = []): unknown[][] {
    this.statementCount++
    try {
      return this.#prepare(sql).values(...params)
    } catch (error) {
      throw this.#toError(error)
    }
  }

  executeMany: ExecuteMany = async (sql, rows) => {
    try {
      const returned: unknown[][] = []
      for (const { sql: text, params, count, toReturned } of batchInserts(sql, rows)) {
        this.statementCount += count
        const found = this.#prepare(text).values(...params)
        for (const row of toReturned ? toReturned(this.#readLastNumber()) : found) returned.push(row)
      }
      return returned
    } catch (error) {
      throw this.#toError(error)
    }
  }

  #readLastNumber = () => this.#prepare('select last_insert_rowid()').values()[0]![0] as number

  async transaction(work: (executor: Executor) => Promise<void>) {
    await this.#retryWhileBusy(() => this.query('begin immediate'))
    try {
      await work(this)
      await this.query('commit')
    } catch (error) {
      await this.query('rollback').catch(() => {}) // SQLite may have done so itself
      throw error
    }
  }

  /**
   * Runs the pending migrations of the database's version, once, even when several processes try at the same time. A
   * new file gets the mark of its owner.
   */
  async migrate(listPending: (version: number) => string[], mark: number) {
    if (listPending(await this.readPragma('user_version')).length)
      await this.transaction(async () => {
        const version = await this.readPragma('user_version')
        const migrations = listPending(version)
        if (!version) this.connection.exec(`pragma application_id = ${mark}`)
        for (const sql of migrations) this.execute(sql)
        this.connection.exec(`pragma user_version = ${version + migrations.length}`)
      })
  }

  /**
   * @throws DatabaseDamaged for a file of another tenant
   * @throws 503 BUSY when its tenant was moved, 404 TENANT_NOT_FOUND when it was ended
   */
  async assertMark(mark: number) {
    const fileMark = await this.readPragma('application_id')
    if (fileMark === mark) return
    if (fileMark !== toMovedMark(mark))
      throw new DatabaseDamaged(undefined, 'The database file belongs to another tenant.')
    const [[home] = []] = await this.query('select home from moved')
    if (typeof home === 'string') throw new TenantMoved(home)
    notFound('tenant')
  }

  /**
   * Copies the whole log into the file and empties it. SQLite reports a blocked checkpoint as a row instead of an
   * error, so it is retried here.
   * @throws 503 BUSY when another process keeps blocking it; that process empties the log when it closes the file
   */
  truncateLog() {
    return this.#retryWhileBusy(async () => {
      const [[busy] = []] = await this.query('pragma wal_checkpoint(truncate)')
      if (busy) throw new Busy('The log is in use.')
    })
  }

  readPragma = async (name: string) => (await this.query(`pragma ${name}`))[0]![0] as number

  /** Closes the connection. Statements go first, because SQLite keeps a file open as long as one of them exists. */
  close() {
    for (const statement of this.#statements.values()) statement.finalize()
    CachedConnection.openCount--
    this.connection.close()
  }

  /** Retries work while another process blocks it, without blocking this process. */
  async #retryWhileBusy(work: () => Promise<unknown>) {
    const until = performance.now() + this.lockTimeout
    for (;;) {
      try {
        await work()
        return
      } catch (error) {
        if (!(error instanceof Busy) || performance.now() > until) throw error
        await Bun.sleep(5 + Math.random() * 15)
      }
    }
  }

  #toError(error: unknown) {
    const translated = toStorageError(error)
    if (translated instanceof DiskFailure) this.hasDiskFailed = true
    return translated
  }

  #prepare(sql: string) {
    const cached = this.#statements.get(sql)
    if (cached) return cached
    const statement = this.connection.prepare(sql)
    this.#statements.set(sql, statement)
    if (this.#statements.size > MAX_PREPARED_STATEMENTS) {
      const [oldest, unused] = this.#statements.entries().next().value!
      unused.finalize()
      this.#statements.delete(oldest)
    }
    return statement
  }
}
