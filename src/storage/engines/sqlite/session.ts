import { missing } from '../../../core/problem'
import { Busy, Damaged, DiskFault, Moved, storageError } from '../../errors'
import type { Ask, Asking, Each } from '../../port'
import type { Connection, Statement } from './drivers'
import { together } from './together'

const KEPT = 500 // statements; preparing one costs ten times what running it does

/** What a file has instead of its mark when nobody is served from it any more. */
export const markOfMoved = (mark: number) => ~mark

/** A connection that keeps statements prepared, the latest that were new to it. */
export class Session {
  #kept = new Map<string, Statement>()
  /** Whether the disk has failed under it. */
  failed = false
  /** How many statements were run so far, by what they write. */
  asked = 0

  constructor(
    private connection: Connection,
    private patience: number,
  ) {}

  run(sql: string) {
    try {
      this.connection.exec(sql)
    } catch (error) {
      throw this.#failure(error)
    }
  }

  /** Runs what another process may be in the way of for a while, as one that is just closing the file. */
  setUp = (sql: string) => this.#patiently(async () => this.run(sql))

  ask: Ask = async (sql, params) => this.values(sql, params)

  /** The same, at once. */
  values(sql: string, params: unknown[] = []): unknown[][] {
    this.asked++
    try {
      return this.#prepared(sql).values(...params)
    } catch (error) {
      throw this.#failure(error)
    }
  }

  each: Each = async (sql, rows) => {
    try {
      for (const { sql: text, params, count } of together(sql, rows)) {
        this.asked += count
        this.#prepared(text).values(...params)
      }
    } catch (error) {
      throw this.#failure(error)
    }
  }

  async transaction(work: (asking: Asking) => Promise<void>) {
    await this.#patiently(() => this.ask('begin immediate'))
    try {
      await work(this)
      await this.ask('commit')
    } catch (error) {
      await this.ask('rollback').catch(() => {}) // SQLite may have done so itself
      throw error
    }
  }

  /**
   * Runs what `left` names after the database's version, once, whoever else tries at the same time. A new file gets the
   * mark of its owner.
   */
  async migrate(left: (version: number) => string[], mark: number) {
    if (left(await this.pragma('user_version')).length)
      await this.transaction(async () => {
        const at = await this.pragma('user_version')
        const migrations = left(at)
        if (!at) this.connection.exec(`pragma application_id = ${mark}`)
        for (const sql of migrations) this.run(sql)
        this.connection.exec(`pragma user_version = ${at + migrations.length}`)
      })
  }

  /** @throws Damaged for a file with the mark of another, 503 when its tenant was moved elsewhere, 404 when it was ended */
  async requireMark(mark: number) {
    const found = await this.pragma('application_id')
    if (found === mark) return
    if (found !== markOfMoved(mark)) throw new Damaged(undefined, 'The database file belongs to another tenant.')
    const [[home] = []] = await this.ask('select home from moved')
    if (typeof home === 'string') throw new Moved(home)
    missing('tenant')
  }

  /**
   * Copies the whole log into the file and empties it. A checkpoint that somebody is in the way of is no error but a row,
   * so it is tried again. @throws Busy when another process stays in the way, which empties it when it closes the file
   */
  emptyLog() {
    return this.#patiently(async () => {
      const [[busy] = []] = await this.ask('pragma wal_checkpoint(truncate)')
      if (busy) throw new Busy('The log is in use.')
    })
  }

  pragma = async (name: string) => (await this.ask(`pragma ${name}`))[0]![0] as number

  /** Statements first: SQLite keeps a file open for as long as one of them lives. */
  close() {
    for (const statement of this.#kept.values()) statement.finalize()
    this.connection.close()
  }

  /** While another process is in the way, this one goes on with other things. */
  async #patiently(work: () => Promise<unknown>) {
    const until = performance.now() + this.patience
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

  #failure(error: unknown) {
    const told = storageError(error)
    if (told instanceof DiskFault) this.failed = true
    return told
  }

  #prepared(sql: string) {
    const known = this.#kept.get(sql)
    if (known) return known
    const statement = this.connection.prepare(sql)
    this.#kept.set(sql, statement)
    if (this.#kept.size > KEPT) {
      const [oldest, unused] = this.#kept.entries().next().value!
      unused.finalize()
      this.#kept.delete(oldest)
    }
    return statement
  }
}
