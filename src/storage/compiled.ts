import { eq, getTableColumns, is, Param, Placeholder, type SQL, sql } from 'drizzle-orm'
import type { SQLitePreparedQuery, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Tx } from './port'
import { builder } from './store'

type Asking = Pick<Tx, 'ask'>
type Values = Record<string, unknown>

/**
 * A statement that is built once, with placeholders, and asked in whatever transaction. Building one takes ten times as
 * long as asking it: this is for those that thousands a second ask.
 */
export function compiled<Row>(build: (db: Tx) => { prepare(): { all(): Promise<Row[]> } }) {
  let known: Built | undefined
  return async (tx: Asking, values: Values): Promise<Row[]> => {
    known ??= build(builder).prepare() as unknown as Built
    const { sql: text, params } = known.getQuery()
    const rows = await tx.ask(text, filled(params, values))
    return known.mapAllResult(rows) as Row[]
  }
}
type Built = SQLitePreparedQuery<never> & { mapAllResult(rows: unknown[][]): unknown }

/** What puts whole rows of a table in, and in the place of those of the same `_id`. */
export function rowsOf<Table extends SQLiteTable>(table: Table) {
  const columns = getTableColumns(table)
  const all = Object.fromEntries(Object.keys(columns).map((name) => [name, sql.placeholder(name)])) as never
  const same = eq(columns._id as never, sql.placeholder('_id') as never) as SQL
  const insert = compiled((tx) => tx.insert(table).values(all) as never)
  const update = compiled((tx) => tx.update(table).set(all).where(same) as never)
  type Row = Table['$inferSelect']
  return {
    insert: async (tx: Asking, row: Row) => void (await insert(tx, row as Values)),
    update: async (tx: Asking, row: Row) => void (await update(tx, row as Values)),
  }
}

/** Drizzle's own does not know that nothing stays nothing, whatever the column. */
const filled = (params: unknown[], values: Values) =>
  params.map((param) => {
    const slot = is(param, Param) ? param.value : param
    if (!is(slot, Placeholder)) return param
    const value = values[slot.name] ?? null
    return value !== null && is(param, Param) ? param.encoder.mapToDriverValue(value) : value
  })
