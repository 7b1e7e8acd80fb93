/** A part of a statement with its parameters. */
export type SqlFragment = { sql: string; params: unknown[] }

/** Returns a part of a statement; `params` are the values of its question marks, in order. */
export const fragment = (sql: string, ...params: unknown[]): SqlFragment => ({ sql, params })
const joinFragments = (parts: SqlFragment[], by: string) =>
  fragment(parts.map(({ sql }) => sql).join(by), ...parts.flatMap(({ params }) => params))
/** Returns the SQL for whether all conditions hold, at least one. */
export const and = (parts: SqlFragment[]) => joinFragments(parts, ' and ')
/** Returns the parts as a list, such as that of the columns to select. */
export const commaList = (parts: SqlFragment[]) => joinFragments(parts, ', ')

/** Returns the SQL for whether an expression equals one of the values. */
export function oneOf(sql: string, values: (string | number)[]): SqlFragment {
  const params = padValues(values)
  return fragment(`${sql} in (${params.map(() => '?').join(', ')})`, ...params)
}

/** Returns the SQL for whether an expression equals none of the values. */
export function noneOf(sql: string, values: (string | number)[]): SqlFragment {
  const condition = oneOf(sql, values)
  return fragment(`not (${condition.sql})`, ...condition.params)
}

/**
 * Returns the SQL of the rows `e` of a table for which the condition holds with one of the texts, which is `j.value`.
 * Engines look up each text, however few rows of the table they expect; there are no more rows than these to read.
 */
export const lookUpEach = (table: string, condition: string, texts: string[], ...params: unknown[]): SqlFragment =>
  fragment(`json_each(?) as j cross join ${table} e where ${condition}`, JSON.stringify([...new Set(texts)]), ...params)

/** Pads a list with its last value to the next power of four, so that few different statements are prepared. */
export function padValues<Value>(values: Value[]): Value[] {
  let length = 1
  while (length < values.length) length *= 4
  return Array.from({ length }, (_, at) => values[Math.min(at, values.length - 1)]!)
}

/** Splits values into lists for one statement each; databases allow about 32,000 parameters. */
export const toChunks = <Value>(values: Value[]) =>
  Array.from({ length: Math.ceil(values.length / VALUES_PER_STATEMENT) }, (_, at) =>
    values.slice(at * VALUES_PER_STATEMENT, (at + 1) * VALUES_PER_STATEMENT),
  )

const VALUES_PER_STATEMENT = 4_096

/** Returns the first rows whose sizes add up to at most `limit`, but at least one row. */
export function takeWithinSize<Row>(rows: Row[], limit: number, sizeOf: (row: Row) => number): Row[] {
  let size = 0
  const end = rows.findIndex((row, index) => {
    size += sizeOf(row)
    return index > 0 && size > limit
  })
  return end < 0 ? rows : rows.slice(0, end)
}

/** Returns the SQL with its parameters, which are texts, in the places of the question marks. */
export function withLiterals({ sql, params }: SqlFragment): string {
  const texts = params.values()
  return sql.replaceAll('?', () => `'${(texts.next().value as string).replaceAll("'", "''")}'`)
}
