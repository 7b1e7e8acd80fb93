import type { Kind, Table } from './catalogue'
import type { Ask, Bulk } from './port'

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
const AT_ONCE = 1_000 // rows
const KEYS = 1_000 // in one statement

/** The rows of a table as they are in every engine, in the order of their keys, and the statements that change them. */
export class Rows {
  /** Inserts a row, or changes the one with its key. */
  readonly upsert: string
  readonly remove: string
  #columns: string
  /** Its parts as parameters, which PostgreSQL takes for texts unless it is told. */
  #key: string[]
  #kinds: Kind[]
  #places: number[]
  #neutral: { place: number; neutral: (value: unknown) => Value }[]

  constructor(readonly table: Table) {
    const columns = table.columns.map((column) => column.name)
    const others = columns.filter((column) => !table.key.includes(column))
    this.#places = table.key.map((column) => columns.indexOf(column))
    this.#neutral = table.columns.flatMap(({ kind }, place) => {
      const neutral = NEUTRAL[kind]
      return neutral ? [{ place, neutral }] : []
    })
    const own = (column: string) => `${name(table.name)}.${name(column)}`
    this.#columns = table.columns
      .map(({ name: column, kind }) => (kind === 'integer' ? `cast(${own(column)} as text)` : own(column)))
      .join(', ')
    const changes = others.map((column) => `${name(column)} = excluded.${name(column)}`).join(', ')
    const otherwise = `on conflict (${list(table.key)}) do ${changes ? `update set ${changes}` : 'nothing'}`
    this.upsert = `insert into ${name(table.name)} (${list(columns)}) values (${values(columns)}) ${otherwise}`
    this.#kinds = this.#places.map((place) => table.columns[place]!.kind)
    this.#key = this.#kinds.map((kind) => (kind === 'integer' ? 'cast(? as bigint)' : '?'))
    const same = table.key.map((column, place) => `${name(column)} = ${this.#key[place]}`)
    this.remove = `delete from ${name(table.name)} where ${same.join(' and ')}`
  }

  keyOf = (row: Row): Key => this.#places.map((place) => row[place]!)

  /** Whether a key comes after another in the order of the table. */
  isAfter(key: Key, other: Key): boolean {
    for (const [place, kind] of this.#kinds.entries()) {
      const [one, another] = [String(key[place]), String(other[place])]
      if (one === another) continue
      return kind === 'integer'
        ? BigInt(one) > BigInt(another)
        : Buffer.compare(Buffer.from(one), Buffer.from(another)) > 0
    }
    return false
  }

  /** The first rows of a range. */
  async first(ask: Ask, range: Range, limit: number): Promise<Row[]> {
    const { name: table, key } = this.table
    // Without the table's name PostgreSQL would order by what was selected: by texts.
    const order = key.map((column) => `${name(table)}.${name(column)}`).join(', ')
    const { where, bounds } = this.#within(range)
    return this.#neutrally(await ask(`select ${this.#columns} ${where} order by ${order} limit ${limit}`, bounds))
  }

  /** Those rows of these keys that there are. */
  async among(ask: Ask, keys: Key[]): Promise<Row[]> {
    const { name: table, key } = this.table
    const one = `(${this.#key.join(', ')})`
    const same = key.map((column) => `${name(table)}.${name(column)} = wanted.${name(column)}`).join(' and ')
    const found: Row[] = []
    for (let at = 0; at < keys.length; at += KEYS) {
      const some = keys.slice(at, at + KEYS)
      const wanted = `with wanted (${list(key)}) as (values ${some.map(() => one).join(', ')})`
      // Crossed, which engines take for an order: the table is asked for each key, however little they know of it.
      const sql = `${wanted} select ${this.#columns} from wanted cross join ${name(table)} where ${same}`
      found.push(...this.#neutrally(await ask(sql, some.flat())))
    }
    return found
  }

  /** Removes all, some at a time. Returns how many there were. */
  async clear(bulk: Bulk): Promise<number> {
    for (let removed = 0; ; ) {
      const some = await bulk.snapshot(({ ask }) => this.first(ask, {}, AT_ONCE))
      const last = some.at(-1)
      if (!last) return removed
      const { where, bounds } = this.#within({ upto: this.keyOf(last) })
      await bulk.alone(({ ask }) => ask(`delete ${where}`, bounds))
      removed += some.length
    }
  }

  #neutrally(rows: unknown[][]): Row[] {
    for (const row of rows)
      for (const { place, neutral } of this.#neutral) if (row[place] !== null) row[place] = neutral(row[place])
    return rows as Row[]
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
