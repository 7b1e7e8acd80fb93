import type pg from 'pg'
import { toChunks } from '../../../core/chunks'
import { toStorageError } from '../../errors'
import type { BatchInserts } from './batch-insert'
import { toMultiRow } from './dialect'
import { runGroup, Statement, type StatementResult, Statements } from './statement-group'

/**
 * Runs a statement of the engines' common dialect and returns its rows as arrays.
 * @throws the error as one of `errors.ts`
 */
export const runQuery = async (client: pg.ClientBase, sql: string, values?: unknown[]): Promise<unknown[][]> =>
  (await runStatement(client, Statement.translate(sql), values)).rows

/** Runs a statement, and returns how many rows it wrote beside the rows that it returns. @throws as `runQuery` does */
export async function runStatement(
  client: pg.ClientBase,
  statement: Statement,
  params?: unknown[],
): Promise<StatementResult> {
  const { results, error } = await runGroup(client, [{ statement, params }])
  if (error) throw toStorageError(error)
  return results[0]!
}

const WRITTEN_TABLE = /^\s*(?:insert into|update|delete from) "?(\w+)/

/** Returns the table that a statement writes to, if it does. */
export const writtenTable = (sql: string): string | undefined => WRITTEN_TABLE.exec(sql)?.[1]

// The most rows in one statement. A statement has at most 65,535 parameters, and the time to plan a deletion grows with
// its conditions.
const MAX_ROWS_PER_STATEMENT = { values: 500, conditions: 50 }

/** What the statements of a bucket are made with. */
export type BucketStatements = { statements: Statements; inserts?: BatchInserts }

type RunStatement = (statement: Statement, params?: unknown[]) => Promise<StatementResult>

/**
 * Runs a statement for many rows, and returns what it returns for them. Insertions and deletions by key are combined;
 * other statements are pipelined.
 */
export async function runMany(
  client: pg.ClientBase,
  sql: string,
  rows: unknown[][],
  { statements, inserts }: BucketStatements = { statements: new Statements() },
  run: RunStatement = (statement, params) => runStatement(client, statement, params),
) {
  const pending: Promise<StatementResult>[] = []
  const maxRows = /^(insert|delete from ")/.test(sql)
    ? MAX_ROWS_PER_STATEMENT.values
    : MAX_ROWS_PER_STATEMENT.conditions
  for (const chunk of toChunks(rows, maxRows)) {
    const made = inserts?.toStatement(client, sql, chunk)
    // Otherwise, all statements are begun at once, so that none that is begun later gets between them.
    const batch = made instanceof Promise ? await made : made
    const multiRow = batch ? undefined : toMultiRow(sql, chunk.length)
    if (batch) pending.push(run(statements.of(batch.sql), batch.params))
    else if (multiRow) pending.push(run(statements.translate(multiRow), chunk.flat()))
    else pending.push(...chunk.map((row) => run(statements.translate(sql), row)))
  }
  const settled = await Promise.allSettled(pending)
  return settled.flatMap((one) => {
    if (one.status === 'rejected') throw one.reason
    return one.value.rows
  })
}
