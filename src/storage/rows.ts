import type { Kind, Table } from './catalogue'
import type { Ask } from './port'

/** Integers are texts, for they may be larger than JavaScript's; JSON is text with its keys in order. */
export type Value = string | number | Uint8Array | null
export type Row = Value[]
export type Key = Value[]

/** What comes after the one key, up to the other and with it; all, where there is none. */
export type Range = { after?: Key; upto?: Key }
export type Page = Range & { rows: Row[] }

const name = (column: string) => `"${column}"`
const list = (columns: string[]) => columns.map(name).join(', ')
const values = (columns: string[]) => columns.map(() => '?').join(', ')
const equal = (columns: string[], by: string) => columns.map((column) => `${name(column)} = ?`).join(by)

/** The rows of a table as they are in every engine, in the order of their keys, and the statements that change them. */
export class Rows {
  readonly insert: string
  readonly update: string
  readonly remove: string
  #columns: string
  #places: number[]
  #others: number[]
  #neutral: { place: number; neutral: (value: unknown) => Value }[]

  constructor(readonly table: Table) {
    const columns = table.columns.map((column) => column.name)
    const others = columns.filter((column) => !table.key.includes(column))
    this.#places = table.key.map((column) => columns.indexOf(column))
    this.#others = others.map((column) => columns.indexOf(column))
    this.#neutral = table.columns.flatMap(({ kind }, place) => {
      const neutral = NEUTRAL[kind]
      return neutral ? [{ place, neutral }] : []
    })
    this.#columns = table.columns
      .map(({ name: column, kind }) => (kind === 'integer' ? `cast(${name(column)} as text)` : name(column)))
      .join(', ')
    this.insert = `insert into ${name(table.name)} (${list(columns)}) values (${values(columns)})`
    this.update = `update ${name(table.name)} set ${equal(others, ', ')} where ${equal(table.key, ' and ')}`
    this.remove = `delete from ${name(table.name)} where ${equal(table.key, ' and ')}`
  }

  keyOf = (row: Row): Key => this.#places.map((place) => row[place]!)

  /** The values of `update`. */
  changeOf = (row: Row) => [...this.#others.map((place) => row[place]), ...this.keyOf(row)]

  /** The first rows of a range. */
  async first(ask: Ask, range: Range, limit: number): Promise<Row[]> {
    const { name: table, key } = this.table
    // Without the table's name PostgreSQL would order by what was selected: by texts.
    const order = key.map((column) => `${name(table)}.${name(column)}`).join(', ')
    const { where, bounds } = this.#within(range)
    const rows = await ask(`select ${this.#columns} ${where} order by ${order} limit ${limit}`, bounds)
    for (const row of rows)
      for (const { place, neutral } of this.#neutral) if (row[place] !== null) row[place] = neutral(row[place])
    return rows as Row[]
  }

  /** What an aggregate makes of a range, and how many rows it has. */
  async aggregate(ask: Ask, range: Range, of: string): Promise<string> {
    const { where, bounds } = this.#within(range)
    return JSON.stringify(await ask(`select count(*), cast(${of} as text) ${where}`, bounds))
  }

  #within({ after, upto }: Range) {
    const { name: table, key } = this.table
    const conditions = [after && '>', upto && '<='].filter(Boolean)
    const where = conditions.map((than) => `(${list(key)}) ${than} (${values(key)})`).join(' and ')
    return { where: `from ${name(table)} ${where && `where ${where}`}`, bounds: [...(after ?? []), ...(upto ?? [])] }
  }

  /** A range, some rows at a time. */
  async *pages(ask: Ask, { after, upto }: Range, limit: number): AsyncGenerator<Page> {
    for (let from = after; ; ) {
      const rows = await this.first(ask, { after: from, upto }, limit)
      const last = rows.length === limit ? this.keyOf(rows.at(-1)!) : undefined
      const more = last && !(upto && print(last) === print(upto))
      yield { after: from, upto: more ? last : upto, rows }
      if (!more) return
      from = last
    }
  }
}

/** The same text for the same values. */
export const print = (row: Row) =>
  JSON.stringify(row.map((value) => (value instanceof Uint8Array ? { bytes: value.toHex() } : value)))

/** A checksum of rows in their order. */
export function digest(rows: Row[]): string {
  const hasher = new Bun.CryptoHasher('sha256')
  for (const row of rows) hasher.update(`${print(row)}\n`)
  return hasher.digest('hex')
}

/** JSON with its keys in order: PostgreSQL has an order of its own. */
const canonical = (text: unknown) => JSON.stringify(sorted(JSON.parse(text as string)))

/** Not a Buffer, which JSON would write in its own way. */
const bytes = (value: unknown) => new Uint8Array(value as Uint8Array)

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([key, part]) => [key, sorted(part)]))
}

/** What engines give in a form of their own. */
const NEUTRAL: Partial<Record<Kind, (value: unknown) => Value>> = { json: canonical, blob: bytes }
