import { eq, getTableColumns, is, Param, Placeholder, type SQL, sql } from 'drizzle-orm'
import type { SQLitePreparedQuery, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { statementBuilder } from './db'
import type { Db, Tx } from './port'

type QueryRunner = Pick<Tx, 'query'>
type StatementValues = Record<string, unknown>

/** Returns a function that prepares frequent statements once for each database. */
export function prepareOncePerDb<Statements>(prepare: (db: Db) => Statements) {
  const statementsByDb = new WeakMap<Db, Statements>()
  return (reader: Db): Statements => {
    const db = reader.origin ?? reader
    const statements = statementsByDb.get(db) ?? prepare(db)
    statementsByDb.set(db, statements)
    return statements
  }
}

/**
 * Returns a function that runs a statement in any transaction. The statement is built once, with placeholders: building
 * takes ten times as long as running. It is for statements that run thousands of times a second.
 */
export function prepareQuery<Row>(build: (db: Tx) => { prepare(): { all(): Promise<Row[]> } }) {
  let built: BuiltStatement | undefined
  return async (tx: QueryRunner, values: StatementValues): Promise<Row[]> => {
    built ??= build(statementBuilder).prepare() as unknown as BuiltStatement
    const { sql: text, params } = built.getQuery()
    const rows = await tx.query(text, bindValues(params, values))
    return built.mapAllResult(rows) as Row[]
  }
}
type BuiltStatement = SQLitePreparedQuery<never> & { mapAllResult(rows: unknown[][]): unknown }

/** Returns functions that insert whole rows of a table, and that replace a row by its `_id`. */
export function createRowWriter<Table extends SQLiteTable>(table: Table) {
  const columns = getTableColumns(table)
  const placeholders = Object.fromEntries(Object.keys(columns).map((name) => [name, sql.placeholder(name)])) as never
  const byId = eq(columns._id as never, sql.placeholder('_id') as never) as SQL
  const insert = prepareQuery((tx) => tx.insert(table).values(placeholders) as never)
  const update = prepareQuery((tx) => tx.update(table).set(placeholders).where(byId) as never)
  type Row = Table['$inferSelect']
  return {
    insert: async (tx: QueryRunner, row: Row) => void (await insert(tx, row as StatementValues)),
    update: async (tx: QueryRunner, row: Row) => void (await update(tx, row as StatementValues)),
  }
}

/**
 * Binds values to placeholders. Drizzle's own function passes missing values to the column's encoder instead of binding
 * null.
 */
const bindValues = (params: unknown[], values: StatementValues) =>
  params.map((param) => {
    const slot = is(param, Param) ? param.value : param
    if (!is(slot, Placeholder)) return param
    const value = values[slot.name] ?? null
    return value !== null && is(param, Param) ? param.encoder.mapToDriverValue(value) : value
  })
