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

// Rows of one statement. It takes 65,535 values at most, and planning a removal by conditions takes as long as they are many.
const AT_ONCE = { values: 500, conditions: 50 }

/** Rows that are inserted or removed by their key go together; other statements follow each other on the wire, unanswered. */
export async function each(client: pg.ClientBase, sql: string, rows: unknown[][]) {
  const asked: Promise<unknown>[] = []
  const most = /^(insert|delete from ")/.test(sql) ? AT_ONCE.values : AT_ONCE.conditions
  for (let at = 0; at < rows.length; at += most) {
    const some = rows.slice(at, at + most)
    const together = severalRows(sql, some.length)
    if (together) asked.push(ask(client, together, some.flat()))
    else asked.push(...some.map((row) => ask(client, sql, row)))
  }
  const failed = (await Promise.allSettled(asked)).find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
}
