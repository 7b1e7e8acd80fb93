import type pg from 'pg'
import { toChunks } from '../../../core/chunks'
import { toStorageError } from '../../errors'
import { toMultiRow, toPostgres } from './dialect'

/** Asks what every engine is asked. */
export async function runQuery(client: pg.ClientBase, sql: string, values?: unknown[]): Promise<unknown[][]> {
  try {
    return (await client.query({ text: toPostgres(sql), values, rowMode: 'array' })).rows
  } catch (error) {
    throw toStorageError(error)
  }
}

// Rows of one statement. It takes 65,535 values at most, and planning a removal by conditions takes as long as they are many.
const MAX_ROWS_PER_STATEMENT = { values: 500, conditions: 50 }

/** Rows that are inserted or removed by their key go together; other statements follow each other on the wire, unanswered. */
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
