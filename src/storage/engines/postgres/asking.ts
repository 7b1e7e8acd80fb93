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

const AT_ONCE = 500 // rows of one statement, which takes 65,535 values at most

/** Rows that are inserted go in together; other statements follow each other on the wire, unanswered. */
export async function each(client: pg.ClientBase, sql: string, rows: unknown[][]) {
  const asked: Promise<unknown>[] = []
  for (let at = 0; at < rows.length; at += AT_ONCE) {
    const some = rows.slice(at, at + AT_ONCE)
    const together = severalRows(sql, some.length)
    if (together) asked.push(ask(client, together, some.flat()))
    else asked.push(...some.map((row) => ask(client, sql, row)))
  }
  const failed = (await Promise.allSettled(asked)).find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
}
