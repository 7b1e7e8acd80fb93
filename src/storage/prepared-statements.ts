import { eq, getTableColumns, is, Param, Placeholder, sql } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { statementBuilder } from './db'
import type { Tx } from './port'

type QueryRunner = Pick<Tx, 'query'>
type StatementValues = Record<string, unknown>
/** A statement of Drizzle, whose rows are of this type. */
type Statement<Rows> = {
  prepare(): {
    getQuery(): { sql: string; params: unknown[] }
    mapAllResult(rows: unknown[][]): unknown
    all(): Promise<Rows>
  }
}

/**
 * Returns a function that runs a statement with any database. The statement is built once for all tenants, with
 * placeholders: building takes ten times as long as running. It is for statements that run thousands of times a second.
 */
export function prepareQuery<Rows>(build: (db: Tx) => Statement<Rows>) {
  let built: ReturnType<Statement<Rows>['prepare']> | undefined
  return async (tx: QueryRunner, values: StatementValues): Promise<Rows> => {
    built ??= build(statementBuilder).prepare()
    const { sql: text, params } = built.getQuery()
    const rows = await tx.query(text, bindValues(params, values))
    return built.mapAllResult(rows) as Rows
  }
}

/** Returns a function that runs a statement as `prepareQuery` does, and returns its first row, or undefined. */
export function prepareFirst<Row>(build: (db: Tx) => Statement<Row[]>) {
  const query = prepareQuery(build)
  return async (tx: QueryRunner, values: StatementValues): Promise<Row | undefined> => (await query(tx, values))[0]
}

/** Returns functions that insert whole rows of a table, and that replace a row by its `_id`. */
export function createRowWriter<Table extends SQLiteTable & { _id: SQLiteColumn }>(table: Table) {
  const anyTable: SQLiteTable = table
  const names = Object.keys(getTableColumns(anyTable))
  const placeholders = Object.fromEntries(names.map((name) => [name, sql.placeholder(name)]))
  const byId = eq(table._id, sql.placeholder('_id'))
  const insert = prepareQuery((tx) => tx.insert(anyTable).values(placeholders))
  const update = prepareQuery((tx) => tx.update(anyTable).set(placeholders).where(byId))
  type Row = Table['$inferSelect']
  return {
    insert: async (tx: QueryRunner, row: Row) => void (await insert(tx, row)),
    update: async (tx: QueryRunner, row: Row) => void (await update(tx, row)),
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
