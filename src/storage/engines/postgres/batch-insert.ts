import type pg from 'pg'

const MIN_BATCH_ROWS = 8 // fewer rows are as quick as values of one statement
const PLAIN_INSERT = /^insert into (?!search_)(\w+) \(([^()]+)\) values \((?:\?, )*\?\)( returning [\w, ]+)?$/

type ColumnTypes = ReadonlyMap<string, string>
type Statement = { sql: string; params: unknown[] }

/**
 * Inserts many rows of a bucket's tables as one JSON value. PostgreSQL takes two thirds of the time that it takes for a
 * parameter for each value, and the server has less to encode.
 */
export class BatchInserts {
  #types = new Map<string, ColumnTypes>()

  /** Returns a statement of PostgreSQL that inserts all rows; undefined when JSON cannot hold them, or they are few. */
  async toStatement(client: pg.ClientBase, sql: string, rows: unknown[][]): Promise<Statement | undefined> {
    if (rows.length < MIN_BATCH_ROWS) return
    const [, table, names, returning = ''] = PLAIN_INSERT.exec(sql) ?? []
    if (!table || !names || !rows.every((row) => row.every(isExactInJson))) return
    const types = this.#types.get(table) ?? (await readColumnTypes(client, table))
    this.#types.set(table, types)
    return toJsonInsert(table, names.split(', '), types, rows, returning)
  }
}

/** Values that all rows share are parameters of their own. */
function toJsonInsert(table: string, names: string[], types: ColumnTypes, rows: unknown[][], returning: string) {
  const first = rows[0]!
  const params: unknown[] = []
  const differing: number[] = []
  const columns = names.map((name, n) => {
    const type = types.get(name.replaceAll('"', ''))
    if (rows.some((row) => row[n] !== first[n])) return `r."${differing.push(n) - 1}"::${type}`
    return `$${params.push(first[n]) + 1}::${type}`
  })
  // JSON is written as text: as JSON within JSON it would become a text.
  const record = differing.map((n, at) => `"${at}" ${toRecordType(types.get(names[n]!.replaceAll('"', '')))}`)
  const json = JSON.stringify(rows.map((row) => Object.fromEntries(differing.map((n, at) => [at, row[n]]))))
  const from = differing.length
    ? `json_to_recordset($1::json) as r (${record.join(', ')})`
    : 'json_array_elements($1::json)'
  return {
    sql: `insert into ${table} (${names.join(', ')}) select ${columns.join(', ')} from ${from}${returning}`,
    params: [json, ...params],
  }
}

const toRecordType = (type: string | undefined) => (type?.startsWith('json') ? 'text' : type)

const isExactInJson = (value: unknown) =>
  value === null || (typeof value === 'string' ? value.isWellFormed() : Number.isFinite(value))

async function readColumnTypes(client: pg.ClientBase, table: string): Promise<ColumnTypes> {
  const { rows } = await client.query<[string, string]>({
    text: `select attname, format_type(atttypid, atttypmod) from pg_attribute
      where attrelid = $1::regclass and attnum > 0 and not attisdropped`,
    values: [table],
    rowMode: 'array',
  })
  return new Map(rows)
}
