import { agreed } from './catalogue'
import { BrokenReference, Conflict } from './errors'
import type { Ask, Bulk } from './port'
import { digest, type Key, type Page, print, type Range, type Row, Rows } from './rows'

const SLICE = 500 // rows

type Slice = {
  /** Up to which key it goes, from the end of the one before. */
  upto?: Key
  rows: number
  /** At which checksum both were alike, and the original's fingerprint then. */
  checksum?: string
  fingerprint?: string
}

/** Which rows were written or removed, and whether both sides are alike now. */
export type Round = { changed: number; alike: boolean }

/**
 * Makes one database like another, of whatever engine, in rounds. Each goes through all tables slice by slice and compares
 * checksums; what differs is written anew, and read again. The checksums are kept, so that a later round only reads the
 * original and what differs from it.
 */
export class Mirror {
  #tables: Rows[]
  #slices = new Map<Rows, Slice[]>()
  constructor(
    private original: Bulk,
    private copy: Bulk,
  ) {
    this.#tables = agreed(original.tables, copy.tables).map((table) => new Rows(table))
    this.#forget(this.#tables)
  }

  /** How many rows the original had in the last round. */
  get rows() {
    return [...this.#slices.values()].flat().reduce((sum, { rows }) => sum + rows, 0)
  }

  /** One round against one state of the original. */
  async round(original: Ask): Promise<Round> {
    const state = { changed: 0, alike: true }
    const differing: Rows[] = []
    // What refers is removed before what is referred to, and written after it.
    for (const rows of this.#tables.toReversed()) state.changed += await this.#remove(original, rows)
    for (const rows of this.#tables) {
      state.changed += await this.#write(original, rows)
      if (this.#slices.get(rows)!.some(({ checksum }) => !checksum)) differing.push(rows)
    }
    state.alike = !differing.length
    // Rows that are in each other's way, as two that exchanged what is unique, come anew with all that refers to them.
    if (differing.length && !state.changed) await this.#clear(differing)
    return state
  }

  /** Rounds until both are alike; nobody may change the original meanwhile. */
  async settle(original: Ask): Promise<void> {
    for (let left = 10; left; left--) if ((await this.round(original)).alike) return
    throw new Error('The copy does not become like the original.')
  }

  /** Removes from the copy what the original hasn't, and notes which slices differ. */
  async #remove(original: Ask, rows: Rows): Promise<number> {
    const known = this.#slices.get(rows)!
    if (fresh(known) && !(await this.#copied(rows, {}, 1)).length) return 0
    const slices: Slice[] = []
    let [after, removed] = [undefined as Key | undefined, 0]
    for (const slice of known) {
      const { upto, checksum, fingerprint } = slice
      if (fingerprint && fingerprint === (await this.#fingerprint(original, rows, { after, upto }))) slices.push(slice)
      else
        for await (const page of rows.pages(original, { after, upto }, checksum ? 2 * SLICE : SLICE)) {
          const whole = page.after === after && page.upto === upto
          const compared = whole && checksum === digest(page.rows) ? slice : await this.#compared(original, rows, page)
          if (!compared.checksum) removed += await this.#removeOthers(rows, page)
          slices.push(compared)
        }
      after = upto
    }
    this.#slices.set(rows, slices)
    return removed
  }

  async #removeOthers(rows: Rows, page: Page): Promise<number> {
    const wanted = new Set(page.rows.map((row) => print(rows.keyOf(row))))
    let removed = 0
    for (let range: Range | undefined = page; range; ) {
      const found = await this.#copied(rows, range, SLICE)
      const others = found.map(rows.keyOf).filter((key) => !wanted.has(print(key)))
      removed += await this.#apply([[rows.remove, others]])
      range = found.length === SLICE ? { after: rows.keyOf(found.at(-1)!), upto: page.upto } : undefined
    }
    return removed
  }

  /** Writes what the copy lacks or has otherwise, and compares what it has then. */
  async #write(original: Ask, rows: Rows): Promise<number> {
    const slices: Slice[] = []
    let [after, written] = [undefined as Key | undefined, 0]
    for (const slice of this.#slices.get(rows)!) {
      const { upto, checksum } = slice
      if (checksum) slices.push(slice)
      else
        for await (const page of rows.pages(original, { after, upto }, SLICE)) {
          written += await this.#writePage(rows, page)
          slices.push(await this.#compared(original, rows, page))
        }
      after = upto
    }
    this.#slices.set(rows, slices)
    return written
  }

  async #writePage(rows: Rows, page: Page): Promise<number> {
    const there = new Map<string, string>()
    for (const row of await this.#copied(rows, page, 2 * SLICE)) there.set(print(rows.keyOf(row)), print(row))
    const found = (row: Row) => there.get(print(rows.keyOf(row)))
    const missing = page.rows.filter((row) => found(row) === undefined)
    const changed = page.rows.filter((row) => ![undefined, print(row)].includes(found(row)))
    return this.#apply([
      [rows.update, changed.map(rows.changeOf)],
      [rows.insert, missing],
    ])
  }

  /** The slice that a page of the original is, with its checksum when the copy has the same. */
  async #compared(original: Ask, rows: Rows, page: Page): Promise<Slice> {
    const slice = { upto: page.upto, rows: page.rows.length }
    const checksum = digest(page.rows)
    if (checksum !== digest(await this.#copied(rows, page, 2 * SLICE + 1))) return slice
    return { ...slice, checksum, fingerprint: await this.#fingerprint(original, rows, page) }
  }

  async #fingerprint(original: Ask, rows: Rows, range: Range): Promise<string | undefined> {
    const { fingerprint } = this.original
    return fingerprint && rows.aggregate(original, range, fingerprint)
  }

  #copied(rows: Rows, range: Range, limit: number): Promise<Row[]> {
    return this.copy.snapshot(({ ask }) => rows.first(ask, range, limit))
  }

  /** Returns how many rows it took. What others are in the way of is left to the next round. */
  async #apply(statements: [string, unknown[][]][]): Promise<number> {
    const asked = statements.flatMap(([sql, list]) => list.map((values) => [sql, values] as const))
    if (!asked.length) return 0
    try {
      await this.copy.alone(async ({ each }) => {
        for (const [sql, list] of statements) if (list.length) await each(sql, list)
      })
      return asked.length
    } catch (error) {
      if (!refused(error)) throw error
    }
    return this.copy.alone(async ({ ask }) => {
      let taken = 0
      for (const [sql, values] of asked) {
        await ask('savepoint one')
        try {
          await ask(sql, values)
          taken++
        } catch (error) {
          if (!refused(error)) throw error
          await ask('rollback to one')
        }
        await ask('release one')
      }
      return taken
    })
  }

  /** Removes all rows of these tables from the copy, and of those that refer to them. */
  async #clear(some: Rows[]) {
    const cleared = new Set(some.map(({ table }) => table.name))
    for (const { table } of this.#tables) if (table.refers.some((name) => cleared.has(name))) cleared.add(table.name)
    const all = this.#tables.filter(({ table }) => cleared.has(table.name))
    for (const rows of all.toReversed()) await this.#removeOthers(rows, { rows: [] })
    this.#forget(all)
  }

  #forget(tables: Rows[]) {
    for (const rows of tables) this.#slices.set(rows, [{ rows: 0 }])
  }
}

/** Nothing was compared yet. */
const fresh = ([first, ...others]: Slice[]) => !others.length && !first?.upto && !first?.checksum

const refused = (error: unknown) => error instanceof Conflict || error instanceof BrokenReference
