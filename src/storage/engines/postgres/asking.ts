import type pg from 'pg'
import { storageError } from '../../errors'
import { severalRows, toPostgres } from './dialect'

/** Asks what every engine is asked. */
export async function ask(client: pg.ClientBase, sql: string, values?: unknown[]): Promise<unknown[][]> {
  try {
    return (await client.query({ text: toPostgres(sql), values, rowMode: 'array' })).rows
  } catch (error) {
    throw storageError(error)
  }
}

// Rows of one statement. It takes 65,535 values at most, and planning a removal takes as long as its rows are many.
const AT_ONCE = { insert: 500, remove: 100, other: 50 }

/** Rows that are inserted or removed by their key go together; other statements follow each other on the wire, unanswered. */
export async function each(client: pg.ClientBase, sql: string, rows: unknown[][]) {
  const asked: Promise<unknown>[] = []
  const most = sql.startsWith('insert')
    ? AT_ONCE.insert
    : sql.startsWith('delete from "')
      ? AT_ONCE.remove
      : AT_ONCE.other
  for (let at = 0; at < rows.length; at += most) {
    const some = rows.slice(at, at + most)
    const together = severalRows(sql, some.length)
    if (together) asked.push(ask(client, together, some.flat()))
    else asked.push(...some.map((row) => ask(client, sql, row)))
  }
  const failed = (await Promise.allSettled(asked)).find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
}
