/**
 * A statement, and how many statements of one row it counts as, by the pages it writes. `toReturned` returns what it would
 * have returned, by the number of the last row.
 */
type BatchStatement = { sql: string; params: unknown[]; count: number; toReturned?: (last: number) => unknown[][] }

const MIN_JSON_ROWS = 8 // fewer rows are as quick one by one
const MAX_JSON_ROWS = 1_000 // of one statement
const MAX_LISTED_ROWS = 64 // of one statement; longer lists are no faster
const ROWS_PER_PAGE = 4 // about how many rows in the order of a key share a page
const NUMBERED = /^ returning (\w+), seq$/ // a column of the rows, and the number that SQLite gives them
const PLAIN_INSERT =
  /^insert into (\w+) \(([^()]+)\) values (\((?:\?, )*\?\))( returning [\w", ]+)?( on conflict do nothing)?$/

/**
 * Combines many inserts into fewer statements. Consecutive rows that differ only in an integer and one more value are passed as
 * JSON, in the order of the key, which takes two thirds of the time. Other rows are listed in a statement, which halves the
 * time of those with `returning`. The numbers of new rows are counted, because returning them takes a fifth of the time.
 */
export function* batchInserts(sql: string, rows: unknown[][]): Generator<BatchStatement> {
  const [, table, names = '', values = '', returned = '', unlessThere = ''] =
    rows.length > 1 ? (PLAIN_INSERT.exec(sql) ?? []) : []
  if (!table) {
    for (const params of rows) yield { sql, params, count: 1 }
    return
  }
  const insert = `insert or fail into ${table} (${names})`
  const listRows = (listed: unknown[][]) => toListedInserts(insert, values, returned, listed)
  if (unlessThere) return yield* toListedInserts(insert, values, unlessThere, rows)
  if (returned) return yield* toReturningInserts(insert, names.split(', '), values, returned, rows)
  for (let at = 0; at < rows.length; ) {
    const { similar, differing } = takeSimilarRows(rows, at)
    const [number, value] = similar.length < MIN_JSON_ROWS ? [] : findNumberAndValue(similar, differing)
    if (number === undefined || value === undefined) yield* listRows(similar)
    else yield toJsonInsert(insert, similar, number, value)
    at += similar.length
  }
}

/** Counts the numbers of new rows instead of returning them: SQLite gives each row the one after the largest. */
function* toReturningInserts(insert: string, names: string[], values: string, returned: string, rows: unknown[][]) {
  const column = names.indexOf(NUMBERED.exec(returned)?.[1] ?? '')
  if (column < 0) return yield* toListedInserts(insert, values, returned, rows)
  let at = 0
  for (const statement of toListedInserts(insert, values, '', rows)) {
    const listed = rows.slice(at, at + statement.count)
    at += listed.length
    yield {
      ...statement,
      toReturned: (last: number) => listed.map((row, n) => [row[column], last - listed.length + 1 + n]),
    }
  }
}

/** Lists a power of two of rows in each statement, so that few statements have to be prepared. */
function* toListedInserts(insert: string, values: string, returned: string, rows: unknown[][]) {
  const differing = rows.length < MAX_LISTED_ROWS ? [] : findDiffering(rows)
  for (let at = 0; at < rows.length; ) {
    let count = MAX_LISTED_ROWS
    while (count > rows.length - at) count /= 2
    const listed = rows.slice(at, at + count)
    yield differing.length && count === MAX_LISTED_ROWS
      ? toSharedInsert(insert, returned, listed, differing)
      : { sql: `${insert} values ${values}${`, ${values}`.repeat(count - 1)}${returned}`, params: listed.flat(), count }
    at += count
  }
}

/** Lists only the columns in which rows differ, and binds shared values once. */
function toSharedInsert(insert: string, returned: string, rows: unknown[][], differing: number[]): BatchStatement {
  const first = rows[0]!
  const columns = first.map((_, n) => (differing.includes(n) ? `column${differing.indexOf(n) + 1}` : '?'))
  const values = `(${differing.map(() => '?').join(', ')})`
  const params = first.filter((_, n) => !differing.includes(n))
  for (const row of rows) for (const n of differing) params.push(row[n])
  const listed = `${values}${`, ${values}`.repeat(rows.length - 1)}`
  return {
    // Without `where`, SQLite parses `on conflict` as the `on` of a join.
    sql: `${insert} select ${columns.join(', ')} from (values ${listed}) where true${returned}`,
    params,
    count: rows.length,
  }
}

/** Returns the columns in which rows differ. */
const findDiffering = (rows: unknown[][]) =>
  [...rows[0]!.keys()].filter((n) => rows.some((row) => row[n] !== rows[0]![n]))

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
