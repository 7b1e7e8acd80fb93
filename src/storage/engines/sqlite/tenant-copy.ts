import { Busy } from '../../errors'
import type { ExclusiveAccess, RunQuery, TenantCopyConnection } from '../../port'
import {
  CHANGED_ROWS_TABLE,
  isDerivedTable,
  SEARCH_PROGRESS_TABLES,
  sortByReferences,
  type TableSchema,
  toColumnKind,
} from '../../schema-catalog'
import { type CachedConnection, toMovedMark } from './connection'

/** Ignores `Busy` where another process does the work instead. */
export const ignoreBusy = (error: unknown) => {
  if (!(error instanceof Busy)) throw error
}

const LOCK_TIMEOUT_MS = 10_000
const CAPTURE_TTL_S = 60
const ENGINE_TABLES = ['moved', 'following', CHANGED_ROWS_TABLE]

/** Copies a whole file. Foreign keys are not checked in it: the copied rows are consistent only in the end. */
export class SqliteTenantCopy implements TenantCopyConnection {
  #isCapturing = false

  constructor(
    private connection: CachedConnection,
    private mark: number,
    readonly tables: TableSchema[],
  ) {}

  /** Captures changes by triggers. Those of a killed mover stay behind, but note nothing after the minute. */
  async captureChanges() {
    await this.#runTransaction('begin immediate', async () => {
      if (this.#isCapturing) await this.#assertCapturing()
      else {
        await this.#stopCapture()
        this.connection.execute(`create table following (until integer not null) strict; insert into following values (0);
          create table ${CHANGED_ROWS_TABLE} (number integer primary key, name text not null, key text not null) strict;
          ${this.tables.flatMap(captureTriggersOf).join(';')}`)
      }
      await this.connection.query('update following set until = unixepoch() + ?', [CAPTURE_TTL_S])
    })
    this.#isCapturing = true
  }

  readSnapshot<T>(work: (state: { query: RunQuery }) => Promise<T>): Promise<T> {
    return this.#runTransaction('begin', async () => {
      await this.connection.query('select 1 from sqlite_schema limit 1') // the snapshot begins with the first read
      return work(this.connection)
    })
  }

  runExclusive<T>(work: (state: ExclusiveAccess) => Promise<T>): Promise<T> {
    return this.#runTransaction('begin immediate', async () => {
      const { query, executeMany } = this.connection
      if (this.#isCapturing) await this.#assertCapturing()
      const setMark = (mark: number) => this.connection.execute(`pragma application_id = ${mark}`)
      const leave = async (home?: string) => {
        this.connection.execute('create table if not exists moved (home text) strict; delete from moved')
        await query('insert into moved (home) values (?)', [home ?? null])
        setMark(toMovedMark(this.mark))
      }
      const serve = async () => {
        this.connection.execute('drop table if exists moved')
        setMark(this.mark)
      }
      return work({ query, executeMany, markMoved: leave, markServing: serve })
    })
  }

  /**
   * SQLite numbers new rows after the existing ones. The log is emptied now, so that closing the file need not wait for
   * that.
   */
  async finish() {
    for (const table of SEARCH_PROGRESS_TABLES) {
      const [derives] = await this.connection.query('select 1 from sqlite_schema where name = ?', [table])
      if (derives) await this.connection.query(`delete from ${table}`)
    }
    await this.connection.truncateLog().catch(ignoreBusy)
  }

  async close() {
    try {
      if (this.#isCapturing) await this.#runTransaction('begin immediate', () => this.#stopCapture())
    } catch {
      // The capture expires by itself. The next capture starts from the beginning.
    }
    this.connection.close()
  }

  async #stopCapture() {
    const triggers = await this.connection.query(
      "select name from sqlite_schema where type = 'trigger' and substr(name, 1, 5) = 'note_'",
    )
    for (const [name] of triggers) this.connection.execute(`drop trigger "${name}"`)
    this.connection.execute(`drop table if exists following; drop table if exists ${CHANGED_ROWS_TABLE}`)
  }

  async #assertCapturing() {
    const [isActive] = await this.connection.query('select 1 from following where until > unixepoch()')
    if (!isActive) throw new Busy('The change capture has expired.')
  }

  async #runTransaction<T>(begin: string, work: () => Promise<T>): Promise<T> {
    await this.#begin(begin)
    try {
      const result = await work()
      await this.connection.query('commit')
      return result
    } catch (error) {
      await this.connection.query('rollback').catch(() => {}) // the first error counts
      throw error
    }
  }

  /** A busy server releases the lock only for moments, which longer pauses between two attempts would miss. */
  async #begin(sql: string) {
    const until = performance.now() + LOCK_TIMEOUT_MS
    this.connection.execute('pragma busy_timeout = 0')
    for (;;)
      try {
        await this.connection.query(sql)
        return
      } catch (error) {
        if (!(error instanceof Busy) || performance.now() > until) throw error
        await new Promise(setImmediate)
      }
  }
}

/** Returns the triggers that note the keys of a table's changed rows while changes are captured. */
function captureTriggersOf({ name, key }: TableSchema): string[] {
  const of = (state: string) => `json_array(${key.map((column) => `cast(${state}."${column}" as text)`).join(', ')})`
  const noteKey = (state: string, when = 'true') =>
    `insert into ${CHANGED_ROWS_TABLE} (name, key) select '${name}', ${of(state)} where ${when};`
  const notesByEvent = {
    insert: noteKey('new'),
    update: noteKey('new') + noteKey('old', `${of('old')} <> ${of('new')}`),
    delete: noteKey('old'),
  }
  return Object.entries(notesByEvent).map(
    ([event, notes]) => `create trigger note_${event}_of_${name} after ${event} on "${name}"
      when (select until from following) > unixepoch() begin ${notes} end`,
  )
}

/** Returns the tables of a file from its catalogue, without those of the engine. */
export async function readTables(query: RunQuery): Promise<TableSchema[]> {
  const columns = await query(
    `select t.name, c.name, c.type, c.pk from sqlite_schema t, pragma_table_info(t.name) c
     where t.type = 'table' and substr(t.name, 1, 7) <> 'sqlite_' order by t.name, c.cid`,
  )
  const references = await query(
    `select distinct t.name, f."table" from sqlite_schema t, pragma_foreign_key_list(t.name) f where t.type = 'table'`,
  )
  return sortByReferences(
    [...Map.groupBy(columns as [string, string, string, number][], ([table]) => table)]
      .filter(([name]) => !ENGINE_TABLES.includes(name) && !isDerivedTable(name))
      .map(([name, of]) => ({
        name,
        columns: of.map(([, column, type]) => ({ name: column, kind: toColumnKind(type) })),
        key: of
          .filter(([, , , place]) => place)
          .sort((one, other) => one[3] - other[3])
          .map(([, column]) => column),
        references: references.flatMap(([table, to]) => (table === name ? [to as string] : [])),
      })),
  )
}
