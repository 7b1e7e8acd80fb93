import { agreed, CHANGED, type Table } from './catalogue'
import { BrokenReference, Conflict } from './errors'
import type { Ask, Bulk } from './port'
import { digest, type Key, print, type Row, Rows } from './rows'

const SLICE = 1_000 // rows, or changes
const RENEWED = 10_000 // ms
const VAIN = 10 // attempts to bring over what is in its own way

/**
 * Makes one database like another, of whatever engine, while others write to that. First all is copied slice by slice, and
 * each slice is read again and compared; then what was changed since is brought over by its keys, as often as need be,
 * and compared in the same way. Both are alike once nobody writes and no change is left.
 */
export class Mirror {
  #tables: Rows[]
  /** Those whose rows others refer to: to remove one may remove others with it. */
  #referred: Rows[]
  /** The keys of rows that may differ. */
  #due: Map<Rows, Map<string, Key>>
  /** Up to which of the changes all were heard. */
  #heard = 0
  #renewed = Number.NEGATIVE_INFINITY
  /** How many rows were copied at first. */
  rows = 0

  constructor(
    private original: Bulk,
    private copy: Bulk,
  ) {
    this.#tables = agreed(original.tables, copy.tables).map((table) => new Rows(table))
    this.#referred = this.#tables.filter((rows) => this.#tables.some(({ table }) => refersTo(table, [rows])))
    this.#due = new Map(this.#tables.map((rows) => [rows, new Map()]))
  }

  /** Copies all. Nobody else may use the copy from now on; what is in it is removed first. */
  async begin(): Promise<void> {
    await this.renew()
    for (const rows of this.#tables.toReversed()) await rows.clear(this.copy)
    const ask: Ask = async (sql, params) => {
      await this.renew()
      return this.original.snapshot(({ ask }) => ask(sql, params))
    }
    for (const [place, rows] of this.#tables.entries()) {
      const others = this.#tables.slice(place + 1)
      this.rows += await this.#table(ask, rows, async (upto) => {
        // What changed where nothing was read yet is read as it is then.
        const ahead = (of: Rows, key: Key) => others.includes(of) || (of === rows && !!upto && of.isAfter(key, upto))
        while (await this.#hear(ask, ahead));
      })
    }
  }

  /** To be called at least every minute from `begin` to the end. */
  async renew(): Promise<void> {
    if (performance.now() < this.#renewed + RENEWED) return
    await this.original.follow()
    this.#renewed = performance.now()
  }

  /** How many changes are not brought over yet. */
  async left(original: Ask): Promise<number> {
    const [[count] = []] = await original(`select count(*) from ${CHANGED} where number > ?`, [this.#heard])
    return Number(count) + this.#different
  }

  /**
   * Brings over what was changed up to one state of the original, a little at a time, until so many milliseconds have
   * passed. Returns whether the copy is like that state.
   */
  async follow(original: Ask, ms: number): Promise<boolean> {
    const until = performance.now() + ms
    for (let vain = 0; ; ) {
      const heard = await this.#hear(original)
      const before = this.#different
      if (!before) return true
      if (performance.now() > until) return false
      await this.#bring(original, !heard)
      if (heard || this.#different < before) continue
      if (++vain > VAIN) throw new Error('The copy does not become like the original.')
      await this.#makeWay(original)
    }
  }

  get #different() {
    return this.#due.values().reduce((sum, { size }) => sum + size, 0)
  }

  /** Writes all rows of a table, and notes what the copy has otherwise then. Returns how many there are. */
  async #table(original: Ask, rows: Rows, copied?: (upto?: Key) => Promise<void>): Promise<number> {
    let count = 0
    for await (const page of rows.pages(original, {}, SLICE)) {
      await this.#apply(rows.upsert, page.rows)
      const there = await this.copy.snapshot(({ ask }) => rows.first(ask, page, 2 * SLICE))
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
    const next = `select number, name, key from ${CHANGED} where number > ? order by number limit ${SLICE}`
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
   * Writes some of what is due, what is referred to first. Before that, what is in the way of it goes; what others refer to
   * goes at last, once `all` changes were heard and nothing in the copy refers to it any more.
   */
  async #bring(original: Ask, all: boolean) {
    const due = this.#tables.filter((rows) => this.#due.get(rows)!.size)
    const last = all && due.every((rows) => this.#due.get(rows)!.size <= SLICE)
    const some = new Map(due.map((rows) => [rows, this.#keys(rows).slice(0, SLICE)]))
    const wanted = new Map<Rows, Row[]>()
    for (const [rows, keys] of some) wanted.set(rows, await rows.among(original, keys))
    const removeOthers = (rows: Rows) => {
      const kept = new Set(wanted.get(rows)!.map((row) => print(rows.keyOf(row))))
      return this.#apply(
        rows.remove,
        some.get(rows)!.filter((key) => !kept.has(print(key))),
      )
    }
    const compare = (rows: Rows) => this.#compare(rows, some.get(rows)!, wanted.get(rows)!)
    for (const rows of due) if (!this.#referred.includes(rows)) await removeOthers(rows)
    for (const rows of due) {
      await this.#apply(rows.upsert, wanted.get(rows)!)
      await compare(rows)
    }
    const written = (rows: Rows) => wanted.get(rows)!.every((row) => !this.#due.get(rows)!.has(print(rows.keyOf(row))))
    if (!last || !due.every(written)) return
    for (const rows of due.toReversed()) {
      await removeOthers(rows)
      await compare(rows)
    }
  }

  #keys = (rows: Rows) => [...this.#due.get(rows)!.values()]

  /** What the copy has as it is wanted is due no more; the rest is due after all others. */
  async #compare(rows: Rows, keys: Key[], wanted: Row[]) {
    const due = this.#due.get(rows)!
    const copied = await this.copy.snapshot(({ ask }) => rows.among(ask, keys))
    const byKey = (list: Row[]) => new Map(list.map((row) => [print(rows.keyOf(row)), print(row)]))
    const [there, should] = [byKey(copied), byKey(wanted)]
    for (const key of keys) {
      const name = print(key)
      due.delete(name)
      if (there.get(name) !== should.get(name)) due.set(name, key)
    }
  }

  /** Rows that are in each other's way, as two that exchanged what is unique, come anew with all that may refer to them. */
  async #makeWay(original: Ask) {
    const gone = this.#tables.filter((rows) => this.#due.get(rows)!.size)
    for (const rows of gone.toReversed()) await this.#apply(rows.remove, this.#keys(rows))
    for (const rows of this.#tables)
      if (refersTo(rows.table, gone)) {
        gone.push(rows)
        await this.#table(original, rows)
      }
  }

  /** What others are in the way of is left out. */
  async #apply(sql: string, list: unknown[][]): Promise<void> {
    if (!list.length) return
    try {
      return await this.copy.alone(({ each }) => each(sql, list))
    } catch (error) {
      if (!refused(error)) throw error
    }
    await this.copy.alone(async ({ ask }) => {
      for (const values of list) {
        await ask('savepoint one')
        try {
          await ask(sql, values)
        } catch (error) {
          if (!refused(error)) throw error
          await ask('rollback to one')
        }
        await ask('release one')
      }
    })
  }
}

const refersTo = ({ refers }: Table, some: Rows[]) => some.some(({ table }) => refers.includes(table.name))

const refused = (error: unknown) => error instanceof Conflict || error instanceof BrokenReference
