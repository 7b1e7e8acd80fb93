/** A statement, and for how many of one row it counts by what it writes. */
type BatchStatement = { sql: string; params: unknown[]; count: number }

const MIN_BATCH_ROWS = 8 // rows; fewer are as quick one by one
const MAX_BATCH_ROWS = 1_000 // of one statement
const ROWS_PER_PAGE = 4 // rows in the order of a key that have a page in common, about
const PLAIN_INSERT = /^insert into (\w+) \(([^()]+)\) values \((?:\?, )*\?\)$/

/**
 * Inserts as fewer statements: rows that follow each other and differ only in a number and one more value go in by one,
 * with these two as JSON, in the order of a key: in two thirds of the time. All other rows have a statement each.
 */
export function* batchInserts(sql: string, rows: unknown[][]): Generator<BatchStatement> {
  const [, table, names] = PLAIN_INSERT.exec(sql) ?? []
  for (let at = 0; at < rows.length; ) {
    const { some: similar, differing } = table ? takeSimilarRows(rows, at) : { some: rows, differing: [] }
    const [number, value] = similar.length < MIN_BATCH_ROWS ? [] : findNumberAndValue(similar, differing)
    if (number === undefined || value === undefined) for (const params of similar) yield { sql, params, count: 1 }
    else yield toJsonInsert(`insert or fail into ${table} (${names})`, similar, number, value)
    at += similar.length
  }
}

/**
 * What fails takes the whole work back, so nothing has to be kept to take back a statement alone (`or fail`). Numbers that
 * follow each other are counted by SQLite.
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

/** The rows from there on that differ in two columns at most, and in which. */
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
  const last = Math.min(rows.length, from + MAX_BATCH_ROWS)
  let end = from + 1
  while (end < last && isSimilar(rows[end]!)) end++
  return { some: rows.slice(from, end), differing }
}

/** Which column can be the name of something in JSON, and which its value. */
function findNumberAndValue(rows: unknown[][], differing: number[]): number[] {
  const number = differing.find((n) => rows.every((row) => Number.isSafeInteger(row[n])))
  const value = differing.find((n) => n !== number && rows.every((row) => isExactInJson(row[n])))
  return number === undefined || value === undefined ? [] : [number, value]
}

/** Whether it comes out of JSON as it went in: SQLite reads fractions a little differently. */
const isExactInJson = (value: unknown) =>
  value === null || (typeof value === 'string' ? value.isWellFormed() : Number.isSafeInteger(value))
