/** A statement, and how many statements of one row it counts as, by the pages it writes. */
type BatchStatement = { sql: string; params: unknown[]; count: number }

const MIN_JSON_ROWS = 8 // fewer rows are as quick one by one
const MAX_JSON_ROWS = 1_000 // of one statement
const MAX_LISTED_ROWS = 64 // of one statement; more take as long
const ROWS_PER_PAGE = 4 // about how many rows in the order of a key share a page
const PLAIN_INSERT = /^insert into (\w+) \(([^()]+)\) values (\((?:\?, )*\?\))( returning [\w", ]+)?$/

/**
 * Yields fewer statements for many inserts. Consecutive rows that differ only in an integer and one more value become one
 * statement with these two as JSON, in the order of the key, which takes two thirds of the time. Other rows are listed in
 * a statement, which takes half of the time where they return something.
 */
export function* batchInserts(sql: string, rows: unknown[][]): Generator<BatchStatement> {
  const [, table, names, values = '', returned = ''] = rows.length > 1 ? (PLAIN_INSERT.exec(sql) ?? []) : []
  if (!table) {
    for (const params of rows) yield { sql, params, count: 1 }
    return
  }
  const insert = `insert or fail into ${table} (${names})`
  const listRows = (listed: unknown[][]) => toListedInserts(`${insert} values ${values}`, values, returned, listed)
  if (returned) return yield* listRows(rows)
  for (let at = 0; at < rows.length; ) {
    const { similar, differing } = takeSimilarRows(rows, at)
    const [number, value] = similar.length < MIN_JSON_ROWS ? [] : findNumberAndValue(similar, differing)
    if (number === undefined || value === undefined) yield* listRows(similar)
    else yield toJsonInsert(insert, similar, number, value)
    at += similar.length
  }
}

/** A statement lists as many rows as a power of two, so that few of them have to be prepared. */
function* toListedInserts(insert: string, values: string, returned: string, rows: unknown[][]) {
  for (let at = 0; at < rows.length; ) {
    let count = MAX_LISTED_ROWS
    while (count > rows.length - at) count /= 2
    const listed = count === 1 ? rows[at]! : rows.slice(at, at + count).flat()
    yield { sql: `${insert}${`, ${values}`.repeat(count - 1)}${returned}`, params: listed, count }
    at += count
  }
}

/**
 * A failure rolls back the whole write, so SQLite need not be able to undo the statement alone (`or fail`). Consecutive
 * numbers are counted by SQLite.
 */
function toJsonInsert(insert: string, rows: unknown[][], number: number, value: number): BatchStatement {
  const first = rows[0]!
  const isConsecutive = rows.every((row, n) => row[number] === (first[number] as number) + n)
  const numbered = isConsecutive ? '? + j.key' : 'cast(j.key as integer)'
  const columns = first.map((_, n) => (n === number ? numbered : n === value ? 'j.atom' : '?'))
  const order = [number, value].sort((one, other) => one - other).map((n) => n + 1)
  const json = isConsecutive
    ? JSON.stringify(rows.map((row) => row[value]))
    : `{${rows.map((row) => `"${row[number]}":${JSON.stringify(row[value])}`)}}`
  return {
    sql: `${insert} select ${columns.join(', ')} from json_each(?) as j order by ${order}`,
    params: [...first.filter((_, n) => n !== value && (isConsecutive || n !== number)), json],
    count: rows.length / ROWS_PER_PAGE,
  }
}

/** Returns the rows from an index on that differ in at most two columns, and those columns. */
function takeSimilarRows(rows: unknown[][], from: number) {
  const [first, differing]: [unknown[], number[]] = [rows[from]!, []]
  const isSimilar = (row: unknown[]) => {
    for (let n = 0; n < first.length; n++) {
      if (row[n] === first[n] || differing.includes(n)) continue
      if (differing.length === 2) return false
      differing.push(n)
    }
    return true
  }
  const last = Math.min(rows.length, from + MAX_JSON_ROWS)
  let end = from + 1
  while (end < last && isSimilar(rows[end]!)) end++
  return { similar: rows.slice(from, end), differing }
}

/**
 * Returns the column that can be a key in JSON and the one that can be its value; an empty list when there are none.
 */
function findNumberAndValue(rows: unknown[][], differing: number[]): number[] {
  const number = differing.find((n) => rows.every((row) => Number.isSafeInteger(row[n])))
  const value = differing.find((n) => n !== number && rows.every((row) => isExactInJson(row[n])))
  return number === undefined || value === undefined ? [] : [number, value]
}

/** Tells whether a value is unchanged by JSON: SQLite parses fractions slightly differently. */
const isExactInJson = (value: unknown) =>
  value === null || (typeof value === 'string' ? value.isWellFormed() : Number.isSafeInteger(value))
