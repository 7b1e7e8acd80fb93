import { inOrder, isDerived, kindOf, PROGRESS, type Table } from '../../catalogue'
import { Busy } from '../../errors'
import type { Alone, Ask, Bulk, State } from '../../port'
import { markOfMoved, type Session } from './session'

const PATIENCE = 10_000 // ms

/** A file as a whole. References are not checked in it: what is copied into it fits together in the end. */
export class SqliteBulk implements Bulk {
  constructor(
    private session: Session,
    private mark: number,
    readonly tables: Table[],
  ) {}

  snapshot<T>(work: (state: State) => Promise<T>): Promise<T> {
    return this.#within('begin', work)
  }

  alone<T>(work: (state: Alone) => Promise<T>): Promise<T> {
    return this.#within('begin immediate', ({ ask, stamp }) => {
      const { each } = this.session
      const becomes = (mark: number) => this.session.run(`pragma application_id = ${mark}`)
      const leave = async (home?: string) => {
        this.session.run('create table if not exists moved (home text) strict; delete from moved')
        await ask('insert into moved (home) values (?)', [home ?? null])
        becomes(markOfMoved(this.mark))
      }
      const serve = async () => {
        this.session.run('drop table if exists moved')
        becomes(this.mark)
      }
      return work({ ask, each, stamp, leave, serve })
    })
  }

  /** SQLite numbers new rows by those that are there. Its log is emptied, so that nobody waits for that at the end. */
  async settle() {
    const [derives] = await this.session.ask('select 1 from sqlite_schema where name = ?', [PROGRESS])
    if (derives) await this.session.ask(`delete from ${PROGRESS}`)
    await this.session.ask('pragma wal_checkpoint(truncate)')
  }

  async close() {
    this.session.close()
  }

  async #within<T>(begin: string, work: (state: State) => Promise<T>): Promise<T> {
    await this.#begin(begin)
    try {
      // This is what makes a snapshot begin, too.
      const stamp = `${await this.session.pragma('data_version')}`
      const result = await work({ ask: this.session.ask, stamp })
      await this.session.ask('commit')
      return result
    } catch (error) {
      await this.session.ask('rollback').catch(() => {})
      throw error
    }
  }

  /** A busy server leaves the lock for moments only, which nobody meets who sleeps between two attempts. */
  async #begin(sql: string) {
    const until = performance.now() + PATIENCE
    this.session.run('pragma busy_timeout = 0')
    for (;;)
      try {
        await this.session.ask(sql)
        return
      } catch (error) {
        if (!(error instanceof Busy) || performance.now() > until) throw error
        await new Promise(setImmediate)
      }
  }
}

/** The tables of a file, from its own catalogue. */
export async function tablesOf(ask: Ask): Promise<Table[]> {
  const columns = await ask(
    `select t.name, c.name, c.type, c.pk from sqlite_schema t, pragma_table_info(t.name) c
     where t.type = 'table' and substr(t.name, 1, 7) <> 'sqlite_' and t.name <> 'moved' order by t.name, c.cid`,
  )
  const references = await ask(
    `select distinct t.name, f."table" from sqlite_schema t, pragma_foreign_key_list(t.name) f where t.type = 'table'`,
  )
  return inOrder(
    [...Map.groupBy(columns as [string, string, string, number][], ([table]) => table)]
      .filter(([name]) => !isDerived(name))
      .map(([name, of]) => ({
        name,
        columns: of.map(([, column, type]) => ({ name: column, kind: kindOf(type) })),
        key: of
          .filter(([, , , place]) => place)
          .sort((one, other) => one[3] - other[3])
          .map(([, column]) => column),
        refers: references.flatMap(([table, to]) => (table === name ? [to as string] : [])),
      })),
  )
}
