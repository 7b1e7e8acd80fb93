import type pg from 'pg'
import { toChunks } from '../../../core/chunks'
import { toStorageError } from '../../errors'
import type { BatchInserts } from './batch-insert'
import { toMultiRow, toPostgres } from './dialect'

/**
 * Runs a statement of the engines' common dialect and returns its rows as arrays.
 * @throws the error as one of `errors.ts`
 */
export const runQuery = async (client: pg.ClientBase, sql: string, values?: unknown[]): Promise<unknown[][]> =>
  (await runStatement(client, sql, values)).rows

/** Runs a statement like `runQuery`, and returns how many rows it wrote beside the rows that it returns. */
export const runStatement = (client: pg.ClientBase, sql: string, values?: unknown[]) =>
  runTranslated(client, toPostgres(sql), values)

async function runTranslated(client: pg.ClientBase, text: string, values?: unknown[]) {
  try {
    const { rows, command, rowCount } = await client.query<unknown[]>({ text, values, rowMode: 'array' })
    return { rows, written: command === 'SELECT' ? 0 : (rowCount ?? 0) }
  } catch (error) {
    throw toStorageError(error)
  }
}

const WRITTEN_TABLE = /^\s*(?:insert into|update|delete from) "?(\w+)/

/** Returns the table that a statement writes to, if it does. */
export const writtenTable = (sql: string): string | undefined => WRITTEN_TABLE.exec(sql)?.[1]

// The most rows in one statement. A statement has at most 65,535 parameters, and the time to plan a deletion grows with
// its conditions.
const MAX_ROWS_PER_STATEMENT = { values: 500, conditions: 50 }

/**
 * Runs a statement for many rows, and returns what it returns for them. Insertions and deletions by key are combined;
 * other statements are pipelined.
 */
export async function runMany(client: pg.ClientBase, sql: string, rows: unknown[][], inserts?: BatchInserts) {
  const pending: Promise<unknown[][]>[] = []
  const maxRows = /^(insert|delete from ")/.test(sql)
    ? MAX_ROWS_PER_STATEMENT.values
    : MAX_ROWS_PER_STATEMENT.conditions
  for (const chunk of toChunks(rows, maxRows)) {
    const batch = await inserts?.toStatement(client, sql, chunk)
    const multiRow = batch ? undefined : toMultiRow(sql, chunk.length)
    if (batch) pending.push(runTranslated(client, batch.sql, batch.params).then(({ rows }) => rows))
    else if (multiRow) pending.push(runQuery(client, multiRow, chunk.flat()))
    else pending.push(...chunk.map((row) => runQuery(client, sql, row)))
  }
  const settled = await Promise.allSettled(pending)
  return settled.flatMap((one) => {
    if (one.status === 'rejected') throw one.reason
    return one.value
  })
}
