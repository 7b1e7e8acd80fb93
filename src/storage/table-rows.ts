import { toChunks } from '../core/chunks'
import type { RunQuery, TenantCopyConnection } from './port'
import type { ColumnKind, TableSchema } from './schema-catalog'

/** Integers are texts, because they may exceed JavaScript's; JSON is a text with sorted keys. */
export type RowValue = string | number | Uint8Array | null
export type Row = RowValue[]
export type RowKey = RowValue[]

/** The keys after `after` up to and including `through`; without a bound, to the end. */
export type KeyRange = { after?: RowKey; through?: RowKey }
export type RowPage = KeyRange & { rows: Row[] }

const quoteName = (column: string) => `"${column}"`
const quoteNames = (columns: string[]) => columns.map(quoteName).join(', ')
const toPlaceholders = (columns: string[]) => columns.map(() => '?').join(', ')
const CLEAR_PAGE_ROWS = 1_000
const MAX_KEYS_PER_STATEMENT = 1_000

/**
 * Reads the rows of a table in the form and the key order common to all engines, and has the statements that change
 * them.
 */
export class TableRows {
  /** Inserts a row, or updates the one with its key. */
  readonly upsertSql: string
  readonly removeSql: string
  #columnList: string
  /** The parameters of a key, which PostgreSQL takes for texts without a cast. */
  #keyParameters: string[]
  #keyKinds: ColumnKind[]
  #keyIndexes: number[]
  #normalizers: { place: number; normalize: (value: unknown) => RowValue }[]

  constructor(readonly table: TableSchema) {
    const columns = table.columns.map((column) => column.name)
    const others = columns.filter((column) => !table.key.includes(column))
    this.#keyIndexes = table.key.map((column) => columns.indexOf(column))
    this.#normalizers = table.columns.flatMap(({ kind }, place) => {
      const normalize = NORMALIZERS[kind]
      return normalize ? [{ place, normalize }] : []
    })
    const own = (column: string) => `${quoteName(table.name)}.${quoteName(column)}`
    this.#columnList = table.columns
      .map(({ name: column, kind }) => (kind === 'integer' ? `cast(${own(column)} as text)` : own(column)))
      .join(', ')
    const changes = others.map((column) => `${quoteName(column)} = excluded.${quoteName(column)}`).join(', ')
    const otherwise = `on conflict (${quoteNames(table.key)}) do ${changes ? `update set ${changes}` : 'nothing'}`
    this.upsertSql = `insert into ${quoteName(table.name)} (${quoteNames(columns)}) values (${toPlaceholders(columns)}) ${otherwise}`
    this.#keyKinds = this.#keyIndexes.map((place) => table.columns[place]!.kind)
    this.#keyParameters = this.#keyKinds.map((kind) => (kind === 'integer' ? 'cast(? as bigint)' : '?'))
    const same = table.key.map((column, place) => `${quoteName(column)} = ${this.#keyParameters[place]}`)
    this.removeSql = `delete from ${quoteName(table.name)} where ${same.join(' and ')}`
  }

  keyOf = (row: Row): RowKey => this.#keyIndexes.map((place) => row[place]!)

  /** Tells whether a key comes after another in the order of the table. */
  isAfter(key: RowKey, other: RowKey): boolean {
    for (const [place, kind] of this.#keyKinds.entries()) {
      const [one, another] = [String(key[place]), String(other[place])]
      if (one === another) continue
      return kind === 'integer'
        ? BigInt(one) > BigInt(another)
        : Buffer.compare(Buffer.from(one), Buffer.from(another)) > 0
    }
    return false
  }

  /** Returns the first rows of a range. */
  async readFirst(query: RunQuery, range: KeyRange, limit: number): Promise<Row[]> {
    const { name: table, key } = this.table
    // Without the table's name PostgreSQL would order by the selected texts.
    const order = key.map((column) => `${quoteName(table)}.${quoteName(column)}`).join(', ')
    const { where, bounds } = this.#toRangeClause(range)
    return this.#normalizeRows(
      await query(`select ${this.#columnList} ${where} order by ${order} limit ${limit}`, bounds),
    )
  }

  /** Returns the existing rows of these keys. */
  async readByKeys(query: RunQuery, keys: RowKey[]): Promise<Row[]> {
    const { name: table, key } = this.table
    const keyPlaceholders = `(${this.#keyParameters.join(', ')})`
    const keyCondition = key
      .map((column) => `${quoteName(table)}.${quoteName(column)} = wanted.${quoteName(column)}`)
      .join(' and ')
    const rows: Row[] = []
    for (const chunk of toChunks(keys, MAX_KEYS_PER_STATEMENT)) {
      const wanted = `with wanted (${quoteNames(key)}) as (values ${chunk.map(() => keyPlaceholders).join(', ')})`
      // A cross join fixes the order: engines look up the table by each key, whatever their statistics.
      const sql = `${wanted} select ${this.#columnList} from wanted cross join ${quoteName(table)} where ${keyCondition}`
      rows.push(...this.#normalizeRows(await query(sql, chunk.flat())))
    }
    return rows
  }

  /** Deletes all rows, page by page. Returns how many there were. */
  async clear(bulk: TenantCopyConnection): Promise<number> {
    for (let removedCount = 0; ; ) {
      const page = await bulk.readSnapshot(({ query }) => this.readFirst(query, {}, CLEAR_PAGE_ROWS))
      const last = page.at(-1)
      if (!last) return removedCount
      const { where, bounds } = this.#toRangeClause({ through: this.keyOf(last) })
      await bulk.runExclusive(({ query }) => query(`delete ${where}`, bounds))
      removedCount += page.length
    }
  }

  #normalizeRows(rows: unknown[][]): Row[] {
    for (const row of rows)
      for (const { place, normalize } of this.#normalizers) if (row[place] !== null) row[place] = normalize(row[place])
    return rows as Row[]
  }

  #toRangeClause({ after, through }: KeyRange) {
    const { name: table, key } = this.table
    const conditions = [after && '>', through && '<='].filter(Boolean)
    const where = conditions.map((than) => `(${quoteNames(key)}) ${than} (${toPlaceholders(key)})`).join(' and ')
    return {
      where: `from ${quoteName(table)} ${where && `where ${where}`}`,
      bounds: [...(after ?? []), ...(through ?? [])],
    }
  }

  /** Yields a range page by page. */
  async *readPages(query: RunQuery, { after, through }: KeyRange, limit: number): AsyncGenerator<RowPage> {
    for (let from = after; ; ) {
      const rows = await this.readFirst(query, { after: from, through }, limit)
      const last = rows.length === limit ? this.keyOf(rows.at(-1)!) : undefined
      const more = last && !(through && encodeRow(last) === encodeRow(through))
      yield { after: from, through: more ? last : through, rows }
      if (!more) return
      from = last
    }
  }
}

/** Returns a text that is equal for equal values. */
export const encodeRow = (row: Row) =>
  JSON.stringify(row.map((value) => (value instanceof Uint8Array ? { bytes: value.toHex() } : value)))

/** Returns the SHA-256 of rows in their order. */
export function checksum(rows: Row[]): string {
  const hasher = new Bun.CryptoHasher('sha256')
  for (const row of rows) hasher.update(`${encodeRow(row)}\n`)
  return hasher.digest('hex')
}

/** Returns JSON with sorted keys, because PostgreSQL has an order of its own. */
const toCanonicalJson = (text: unknown) => JSON.stringify(sortKeys(JSON.parse(text as string)))

/** Returns the bytes without the Buffer, which has a JSON form of its own. */
const toBytes = (value: unknown) => new Uint8Array(value as Uint8Array)

const sortKeys = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([key, part]) => [key, sortKeys(part)]))
}

/** Converts values that engines return in a form of their own. */
const NORMALIZERS: Partial<Record<ColumnKind, (value: unknown) => RowValue>> = { json: toCanonicalJson, blob: toBytes }
