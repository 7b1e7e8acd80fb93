import { CHANGED, inOrder, isDerived, kindOf, PROGRESS, type Table } from '../../catalogue'
import { Busy } from '../../errors'
import type { Alone, Ask, Bulk } from '../../port'
import { markOfMoved, type Session } from './session'

/** For what another process does in our place. */
export const unlessBusy = (error: unknown) => {
  if (!(error instanceof Busy)) throw error
}

const PATIENCE = 10_000 // ms
const FOLLOWED = 60 // s
const OWN = ['moved', 'following', CHANGED] // the engine's

/** A file as a whole. References are not checked in it: what is copied into it fits together in the end. */
export class SqliteBulk implements Bulk {
  #follows = false

  constructor(
    private session: Session,
    private mark: number,
    readonly tables: Table[],
  ) {}

  /** By triggers, which a mover that was killed leaves behind: they note nothing after the minute. */
  async follow() {
    await this.#within('begin immediate', async () => {
      if (this.#follows) await this.#requireFollowed()
      else {
        await this.#unfollow()
        this.session.run(`create table following (until integer not null) strict; insert into following values (0);
          create table ${CHANGED} (number integer primary key, name text not null, key text not null) strict;
          ${this.tables.flatMap(triggersOf).join(';')}`)
      }
      await this.session.ask('update following set until = unixepoch() + ?', [FOLLOWED])
    })
    this.#follows = true
  }

  snapshot<T>(work: (state: { ask: Ask }) => Promise<T>): Promise<T> {
    return this.#within('begin', async () => {
      await this.session.ask('select 1 from sqlite_schema limit 1') // only with this it begins
      return work(this.session)
    })
  }

  alone<T>(work: (state: Alone) => Promise<T>): Promise<T> {
    return this.#within('begin immediate', async () => {
      const { ask, each } = this.session
      if (this.#follows) await this.#requireFollowed()
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
      return work({ ask, each, leave, serve })
    })
  }

  /** SQLite numbers new rows by those that are there. Its log is emptied, so that nobody waits for that at the end. */
  async settle() {
    for (const table of PROGRESS) {
      const [derives] = await this.session.ask('select 1 from sqlite_schema where name = ?', [table])
      if (derives) await this.session.ask(`delete from ${table}`)
    }
    await this.session.emptyLog().catch(unlessBusy)
  }

  async close() {
    try {
      if (this.#follows) await this.#within('begin immediate', () => this.#unfollow())
    } catch {
      // It ends by itself, and who follows next begins anew.
    }
    this.session.close()
  }

  async #unfollow() {
    const triggers = await this.session.ask(
      "select name from sqlite_schema where type = 'trigger' and substr(name, 1, 5) = 'note_'",
    )
    for (const [name] of triggers) this.session.run(`drop trigger "${name}"`)
    this.session.run(`drop table if exists following; drop table if exists ${CHANGED}`)
  }

  async #requireFollowed() {
    const [still] = await this.session.ask('select 1 from following where until > unixepoch()')
    if (!still) throw new Busy('Nobody has followed the changes for a while.')
  }

  async #within<T>(begin: string, work: () => Promise<T>): Promise<T> {
    await this.#begin(begin)
    try {
      const result = await work()
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

/** What notes the keys of a table's rows while somebody follows. */
function triggersOf({ name, key }: Table): string[] {
  const of = (state: string) => `json_array(${key.map((column) => `cast(${state}."${column}" as text)`).join(', ')})`
  const noted = (state: string, when = 'true') =>
    `insert into ${CHANGED} (name, key) select '${name}', ${of(state)} where ${when};`
  const does = {
    insert: noted('new'),
    update: noted('new') + noted('old', `${of('old')} <> ${of('new')}`),
    delete: noted('old'),
  }
  return Object.entries(does).map(
    ([event, notes]) => `create trigger note_${event}_of_${name} after ${event} on "${name}"
      when (select until from following) > unixepoch() begin ${notes} end`,
  )
}

/** The tables of a file, from its own catalogue. */
export async function tablesOf(ask: Ask): Promise<Table[]> {
  const columns = await ask(
    `select t.name, c.name, c.type, c.pk from sqlite_schema t, pragma_table_info(t.name) c
     where t.type = 'table' and substr(t.name, 1, 7) <> 'sqlite_' order by t.name, c.cid`,
  )
  const references = await ask(
    `select distinct t.name, f."table" from sqlite_schema t, pragma_foreign_key_list(t.name) f where t.type = 'table'`,
  )
  return inOrder(
    [...Map.groupBy(columns as [string, string, string, number][], ([table]) => table)]
      .filter(([name]) => !OWN.includes(name) && !isDerived(name))
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
