import type pg from 'pg'
import { toChunks } from '../../../core/chunks'
import { toStorageError } from '../../errors'
import { toMultiRow, toPostgres } from './dialect'

/**
 * Runs a statement of the engines' common dialect and returns its rows as arrays.
 * @throws the error as one of `errors.ts`
 */
export const runQuery = async (client: pg.ClientBase, sql: string, values?: unknown[]): Promise<unknown[][]> =>
  (await runStatement(client, sql, values)).rows

/** Runs a statement like `runQuery`, and returns how many rows it wrote beside the rows that it returns. */
export async function runStatement(client: pg.ClientBase, sql: string, values?: unknown[]) {
  try {
    const { rows, command, rowCount } = await client.query<unknown[]>({
      text: toPostgres(sql),
      values,
      rowMode: 'array',
    })
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

/** Runs a statement for many rows. Insertions and deletions by key are combined; other statements are pipelined. */
export async function runMany(client: pg.ClientBase, sql: string, rows: unknown[][]) {
  const pending: Promise<unknown>[] = []
  const maxRows = /^(insert|delete from ")/.test(sql)
    ? MAX_ROWS_PER_STATEMENT.values
    : MAX_ROWS_PER_STATEMENT.conditions
  for (const chunk of toChunks(rows, maxRows)) {
    const multiRow = toMultiRow(sql, chunk.length)
    if (multiRow) pending.push(runQuery(client, multiRow, chunk.flat()))
    else pending.push(...chunk.map((row) => runQuery(client, sql, row)))
  }
  const failed = (await Promise.allSettled(pending)).find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
}
