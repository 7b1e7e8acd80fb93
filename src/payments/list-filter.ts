import { inArray, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { badRequest } from '../core/problem'
import { parseNames } from '../storage/pagination'

/**
 * Returns the condition that a column has one of the comma-separated values of a query parameter, or undefined without any.
 * `toStored` returns the stored values of one. @throws 400 INVALID_INPUT for a value that is not allowed
 */
export function filterByParameter<Name extends string>(
  column: SQLiteColumn,
  query: { [Parameter in Name]?: string },
  path: Name,
  allowed?: readonly string[],
  toStored: (value: string) => string[] = (value) => [value],
): SQL | undefined {
  const values = parseNames(query[path], path)
  const unknown = allowed && values?.find((value) => !allowed.includes(value))
  if (unknown) badRequest({ path, message: `Unknown ${path} "${unknown}". Use one of: ${allowed.join(', ')}.` })
  return values && inArray(column, values.flatMap(toStored))
}
