import { and, eq, getTableColumns, gt, isNull, lt, or, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { isIsoDateTime } from '../core/clock'
import { badRequest, type FieldError } from '../core/problem'

/** One column of a sort order, with its name in the API. */
export type OrderKey = { name: string; column: SQLiteColumn; descending: boolean }

type CursorValue = string | number | boolean | null

const MAX_CURSOR_LENGTH = 8_192 // characters

/** Returns the `$after` cursor of the page after this row: the values of the row by which the list is sorted. */
export function toCursor(keys: OrderKey[], row: Record<string, unknown>): string {
  return Buffer.from(
    JSON.stringify([signatureOf(keys), ...keys.map(({ column }) => columnValue(row, column))]),
  ).toString('base64url')
}

/**
 * Returns the condition for the rows after a cursor. Missing values come last in both directions. The cursor stays
 * valid whatever is added or removed.
 * @throws 400 INVALID_INPUT for a cursor of another list or order
 */
export function conditionAfter(keys: OrderKey[], cursor: string): SQL | undefined {
  const values = readCursor(keys, cursor)
  const [first] = keys
  // With a row comparison an index of these columns finds the first row directly.
  if (first && keys.every(({ column, descending }) => column.notNull && descending === first.descending)) {
    const columns = sql.join(
      keys.map(({ column }) => sql`${column}`),
      sql`, `,
    )
    const bound = sql.join(
      keys.map(({ column }, n) => sql.param(values[n], column)),
      sql`, `,
    )
    return first.descending ? sql`(${columns}) < (${bound})` : sql`(${columns}) > (${bound})`
  }
  return or(
    ...keys.map((key, n) => {
      const equal = keys.slice(0, n).map(({ column }, m) => equalCondition(column, values[m]!))
      return and(...equal, behindCondition(key, values[n]!))
    }),
  )
}

const equalCondition = (column: SQLiteColumn, value: CursorValue) =>
  value === null ? isNull(column) : eq(column, value)

function behindCondition({ column, descending }: OrderKey, value: CursorValue): SQL | undefined {
  if (value === null) return sql`1 = 0`
  const further = descending ? lt(column, value) : gt(column, value)
  return column.notNull ? further : or(further, isNull(column))
}

const signatureOf = (keys: OrderKey[]) => keys.map(({ name, descending }) => `${descending ? '-' : ''}${name}`).join()

function readCursor(keys: OrderKey[], cursor: string): CursorValue[] {
  const [signature, ...values] = parseCursor(cursor)
  const fits = keys.every(({ column }, n) => isValueOf(column, values[n]))
  if (signature !== signatureOf(keys) || values.length !== keys.length || !fits) return badRequest(FOREIGN_CURSOR_ERROR)
  return values as CursorValue[]
}

function parseCursor(cursor: string): unknown[] {
  try {
    const parsed: unknown = cursor.length <= MAX_CURSOR_LENGTH && JSON.parse(`${Buffer.from(cursor, 'base64url')}`)
    return Array.isArray(parsed) ? parsed : []
  } catch {
    return []
  }
}

function isValueOf(column: SQLiteColumn, value: unknown): boolean {
  if (value === null) return !column.notNull
  if (column.dataType === 'number') return Number.isSafeInteger(value)
  // The columns of `timestamp` in columns.ts.
  if (column.dataType === 'custom') return typeof value === 'string' && isIsoDateTime(value)
  return typeof value === column.dataType && !`${value}`.includes('\0')
}

const FOREIGN_CURSOR_ERROR: FieldError = {
  path: '$after',
  message: 'This $after cursor does not match this list and sort order. Omit it, then follow the Link header.',
}

/** Returns a value of a row, whose keys are the property names of the table. */
function columnValue(row: Record<string, unknown>, column: SQLiteColumn) {
  const [name = ''] = Object.entries(getTableColumns(column.table)).find(([, own]) => own === column) ?? []
  return row[name] ?? null
}
