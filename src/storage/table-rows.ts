import { toChunks } from '../core/chunks'
import type { RunQuery, TenantCopyConnection } from './port'
import type { ColumnKind, TableSchema } from './schema-catalog'

/** Integers are texts, for they may be larger than JavaScript's; JSON is text with its keys in order. */
export type RowValue = string | number | Uint8Array | null
export type Row = RowValue[]
export type RowKey = RowValue[]

/** What comes after the one key, up to the other and with it; all, where there is none. */
export type KeyRange = { after?: RowKey; through?: RowKey }
export type RowPage = KeyRange & { rows: Row[] }

const quoteName = (column: string) => `"${column}"`
const quoteNames = (columns: string[]) => columns.map(quoteName).join(', ')
const toPlaceholders = (columns: string[]) => columns.map(() => '?').join(', ')
const CLEAR_PAGE_ROWS = 1_000 // rows
const MAX_KEYS_PER_STATEMENT = 1_000 // in one statement

/** The rows of a table as they are in every engine, in the order of their keys, and the statements that change them. */
export class TableRows {
  /** Inserts a row, or changes the one with its key. */
  readonly upsertSql: string
  readonly removeSql: string
  #columnList: string
  /** Its parts as parameters, which PostgreSQL takes for texts unless it is told. */
  #keyParameters: string[]
  #keyKinds: ColumnKind[]
  #keyIndexes: number[]
  #normalizers: { place: number; neutral: (value: unknown) => RowValue }[]

  constructor(readonly table: TableSchema) {
    const columns = table.columns.map((column) => column.name)
    const others = columns.filter((column) => !table.key.includes(column))
    this.#keyIndexes = table.key.map((column) => columns.indexOf(column))
    this.#normalizers = table.columns.flatMap(({ kind }, place) => {
      const neutral = NORMALIZERS[kind]
      return neutral ? [{ place, neutral }] : []
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

  /** Whether a key comes after another in the order of the table. */
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

  /** The first rows of a range. */
  async readFirst(query: RunQuery, range: KeyRange, limit: number): Promise<Row[]> {
    const { name: table, key } = this.table
    // Without the table's name PostgreSQL would order by what was selected: by texts.
    const order = key.map((column) => `${quoteName(table)}.${quoteName(column)}`).join(', ')
    const { where, bounds } = this.#toRangeClause(range)
    return this.#normalizeRows(
      await query(`select ${this.#columnList} ${where} order by ${order} limit ${limit}`, bounds),
    )
  }

  /** Those rows of these keys that there are. */
  async readByKeys(query: RunQuery, keys: RowKey[]): Promise<Row[]> {
    const { name: table, key } = this.table
    const keyPlaceholders = `(${this.#keyParameters.join(', ')})`
    const keyCondition = key
      .map((column) => `${quoteName(table)}.${quoteName(column)} = wanted.${quoteName(column)}`)
      .join(' and ')
    const rows: Row[] = []
    for (const chunk of toChunks(keys, MAX_KEYS_PER_STATEMENT)) {
      const wanted = `with wanted (${quoteNames(key)}) as (values ${chunk.map(() => keyPlaceholders).join(', ')})`
      // Crossed, which engines take for an order: the table is asked for each key, however little they know of it.
      const sql = `${wanted} select ${this.#columnList} from wanted cross join ${quoteName(table)} where ${keyCondition}`
      rows.push(...this.#normalizeRows(await query(sql, chunk.flat())))
    }
    return rows
  }

  /** Removes all, some at a time. Returns how many there were. */
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
      for (const { place, neutral } of this.#normalizers) if (row[place] !== null) row[place] = neutral(row[place])
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

  /** A range, some rows at a time. */
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

/** The same text for the same values. */
export const encodeRow = (row: Row) =>
  JSON.stringify(row.map((value) => (value instanceof Uint8Array ? { bytes: value.toHex() } : value)))

/** A checksum of rows in their order. */
export function checksum(rows: Row[]): string {
  const hasher = new Bun.CryptoHasher('sha256')
  for (const row of rows) hasher.update(`${encodeRow(row)}\n`)
  return hasher.digest('hex')
}

/** JSON with its keys in order: PostgreSQL has an order of its own. */
const toCanonicalJson = (text: unknown) => JSON.stringify(sortKeys(JSON.parse(text as string)))

/** Not a Buffer, which JSON would write in its own way. */
const toBytes = (value: unknown) => new Uint8Array(value as Uint8Array)

const sortKeys = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([key, part]) => [key, sortKeys(part)]))
}

/** What engines give in a form of their own. */
const NORMALIZERS: Partial<Record<ColumnKind, (value: unknown) => RowValue>> = { json: toCanonicalJson, blob: toBytes }
