import { agreed, CHANGED, type Table } from './catalogue'
import { again, BrokenReference, Conflict } from './errors'
import type { Ask, Asking, Bulk } from './port'
import { digest, type Key, print, type Row, Rows } from './rows'

const SLICE = 1_000 // rows
const CHANGES = 5_000 // heard of at once
const PAGE = { least: 200, most: 4_000 } // keys of a table
const BRIEF = 100 // ms that a page should take, for writers may wait for it
const RENEWED = 10_000 // ms
const VAIN = 10 // attempts to bring over what is in its own way

/**
 * Makes one database like another, of whatever engine, while others write to that. First all is copied slice by slice, and
 * each slice is read again and compared; then what was changed since is brought over by its keys, as often as need be,
 * and compared in the same way. Both are alike once nobody writes and no change is left. A row that goes may take others
 * with it which refer to it only in the copy: in the original they were changed, too, so they are due or will be.
 */
export class Mirror {
  #tables: Rows[]
  /** The keys of rows that may differ. */
  #due: Map<Rows, Map<string, Key>>
  /** Up to which of the changes all were heard. */
  #heard = 0
  #renewed = Number.NEGATIVE_INFINITY
  /** How many keys of a table are brought over together: as many as are quick enough here. */
  #page = 500
  /** How many rows were copied at first. */
  rows = 0

  constructor(
    private original: Bulk,
    private copy: Bulk,
  ) {
    this.#tables = agreed(original.tables, copy.tables).map((table) => new Rows(table))
    this.#due = new Map(this.#tables.map((rows) => [rows, new Map()]))
  }

  /** Copies all. Nobody else may use the copy from now on; what is in it is removed first. */
  async begin(): Promise<void> {
    await this.renew()
    for (const rows of this.#tables.toReversed()) await again(() => rows.clear(this.copy))
    const ask: Ask = async (sql, params) => {
      await this.renew()
      return again(() => this.original.snapshot(({ ask }) => ask(sql, params)))
    }
    for (const [place, rows] of this.#tables.entries()) {
      const others = this.#tables.slice(place + 1)
      this.rows += await this.#table(ask, rows, async (upto) => {
        // What changed where nothing was read yet is read as it is then.
        const ahead = (of: Rows, key: Key) => others.includes(of) || (of === rows && !!upto && of.isAfter(key, upto))
        // Others go on changing: who waited until they pause would wait for ever.
        while ((await this.#hear(ask, ahead)) === CHANGES);
      })
    }
  }

  /** To be called at least every minute from `begin` to the end. */
  async renew(): Promise<void> {
    if (performance.now() < this.#renewed + RENEWED) return
    await again(() => this.original.follow())
    this.#renewed = performance.now()
  }

  /**
   * Brings over what was changed up to one state of the original, page by page, until so many milliseconds have passed.
   * Returns how many rows are left that may differ from that state.
   */
  async follow(original: Ask, ms: number): Promise<number> {
    const until = performance.now() + ms
    // First all is heard: what changes often is brought over once.
    while (await this.#hear(original));
    for (let vain = 0; this.#different && performance.now() < until; ) {
      const before = this.#different
      await this.#bring(original)
      if (this.#different < before) continue
      if (++vain > VAIN) throw new Error('The copy does not become like the original.')
      await this.#makeWay(original)
    }
    return this.#different
  }

  get #different() {
    return this.#due.values().reduce((sum, { size }) => sum + size, 0)
  }

  /** Writes all rows of a table, and notes what the copy has otherwise then. Returns how many there are. */
  async #table(original: Ask, rows: Rows, copied?: (upto?: Key) => Promise<void>): Promise<number> {
    let count = 0
    for await (const page of rows.pages(original, {}, SLICE)) {
      await again(() => this.copy.alone((asking) => apply(asking, rows.upsert, page.rows)))
      const there = await again(() => this.copy.snapshot(({ ask }) => rows.first(ask, page, 2 * SLICE)))
      if (digest(there) !== digest(page.rows)) this.#note(rows, [...page.rows, ...there].map(rows.keyOf))
      await copied?.(page.upto)
      count += page.rows.length
    }
    return count
  }

  #note(rows: Rows, keys: Key[]) {
    for (const key of keys) this.#due.get(rows)!.set(print(key), key)
  }

  /** Notes the keys of the next changes, but not of those that are `ahead`. Returns how many changes there were. */
  async #hear(original: Ask, ahead?: (rows: Rows, key: Key) => boolean): Promise<number> {
    const next = `select number, name, key from ${CHANGED} where number > ? order by number limit ${CHANGES}`
    const changes = (await original(next, [this.#heard])) as [number, string, string][]
    for (const [number, name, key] of changes) {
      const rows = this.#tables.find(({ table }) => table.name === name)!
      const changed: Key = JSON.parse(key)
      if (!ahead?.(rows, changed)) this.#note(rows, [changed])
      this.#heard = number
    }
    return changes.length
  }

  /**
   * Brings over some of what is due, of each table, in one transaction of the copy: what is gone goes first, for it may be in
   * the way of the rest. What the copy has as it is wanted then is due no more; the rest is due after all others.
   */
  async #bring(original: Ask) {
    const began = performance.now()
    const pages = this.#tables
      .filter((rows) => this.#due.get(rows)!.size)
      .map((rows) => ({ rows, keys: [...this.#due.get(rows)!.entries().take(this.#page)], wanted: [] as Row[] }))
    for (const page of pages) page.wanted = await page.rows.among(original, page.keys.map(keyOf))
    const bring = (change: typeof apply) =>
      this.copy.alone(async (asking) => {
        for (const { rows, keys, wanted } of pages.toReversed()) {
          const kept = byKey(rows, wanted)
          const gone = keys.filter(([name]) => !kept.has(name))
          await change(asking, rows.remove, gone.map(keyOf))
        }
        for (const { rows, wanted } of pages) await change(asking, rows.upsert, wanted)
        const compared = pages.map(async ({ rows, keys, wanted }) => {
          const there = byKey(rows, await rows.among(asking.ask, keys.map(keyOf)))
          const should = byKey(rows, wanted)
          return keys.filter(([name]) => there.get(name) !== should.get(name))
        })
        return Promise.all(compared)
      })
    const differing = await bring(({ each }, sql, list) => each(sql, list)).catch((error) => {
      if (!refused(error)) throw error
      return bring(apply)
    })
    for (const [place, { rows, keys }] of pages.entries()) {
      const due = this.#due.get(rows)!
      for (const [name] of keys) due.delete(name)
      for (const [name, key] of differing[place]!) due.set(name, key)
    }
    const fits = (this.#page * BRIEF) / (performance.now() - began)
    this.#page = Math.round(Math.min(Math.max(fits, this.#page / 2, PAGE.least), this.#page * 2, PAGE.most))
  }

  /** Rows that are in each other's way, as two that exchanged what is unique, come anew with all that may refer to them. */
  async #makeWay(original: Ask) {
    const gone = this.#tables.filter((rows) => this.#due.get(rows)!.size)
    await this.copy.alone(async (asking) => {
      for (const rows of gone.toReversed()) await apply(asking, rows.remove, [...this.#due.get(rows)!.values()])
    })
    for (const rows of this.#tables)
      if (refersTo(rows.table, gone)) {
        gone.push(rows)
        await this.#table(original, rows)
      }
  }
}

/** Leaves out the rows that others are in the way of, which it finds by halves. */
async function apply(asking: Asking, sql: string, list: unknown[][]): Promise<void> {
  if (!list.length) return
  await asking.ask('savepoint these')
  try {
    await asking.each(sql, list)
    await asking.ask('release these')
  } catch (error) {
    if (!refused(error)) throw error
    await asking.ask('rollback to these')
    await asking.ask('release these')
    if (list.length === 1) return
    const half = Math.ceil(list.length / 2)
    await apply(asking, sql, list.slice(0, half))
    await apply(asking, sql, list.slice(half))
  }
}

const keyOf = ([, key]: [string, Key]) => key

const byKey = (rows: Rows, list: Row[]) => new Map(list.map((row) => [print(rows.keyOf(row)), print(row)]))

const refersTo = ({ refers }: Table, some: Rows[]) => some.some(({ table }) => refers.includes(table.name))

const refused = (error: unknown) => error instanceof Conflict || error instanceof BrokenReference
