import { BrokenReference, Conflict, retryWhenBusy } from './errors'
import type { Executor, RunQuery, TenantCopyConnection } from './port'
import { CHANGED_ROWS_TABLE, requireSameTables, type TableSchema } from './schema-catalog'
import { checksum, encodeRow, type Row, type RowKey, TableRows } from './table-rows'

const COPY_PAGE_ROWS = 1_000 // rows
const MAX_CHANGES_PER_READ = 5_000 // heard of at once
const DUE_PAGE_KEYS = { min: 200, max: 4_000 } // keys of a table
const TARGET_PAGE_MS = 100 // ms that a page should take, for writers may wait for it
const RENEW_INTERVAL_MS = 10_000 // ms
const MAX_STALLED_ROUNDS = 10 // attempts to bring over what is in its own way

/**
 * Makes one database like another, of whatever engine, while others write to that. First all is copied slice by slice, and
 * each slice is read again and compared; then what was changed since is brought over by its keys, as often as need be,
 * and compared in the same way. Both are alike once nobody writes and no change is left. A row that goes may take others
 * with it which refer to it only in the copy: in the original they were changed, too, so they are due or will be.
 */
export class LiveCopy {
  #tables: TableRows[]
  /** The keys of rows that may differ. */
  #due: Map<TableRows, Map<string, RowKey>>
  /** Up to which of the changes all were heard. */
  #lastChange = 0
  #renewedAt = Number.NEGATIVE_INFINITY
  /** How many keys of a table are brought over together: as many as are quick enough here. */
  #pageKeys = 500
  /** How many rows were copied at first. */
  copiedRows = 0

  constructor(
    private original: TenantCopyConnection,
    private copy: TenantCopyConnection,
  ) {
    this.#tables = requireSameTables(original.tables, copy.tables).map((table) => new TableRows(table))
    this.#due = new Map(this.#tables.map((rows) => [rows, new Map()]))
  }

  /** Copies all. Nobody else may use the copy from now on; what is in it is removed first. */
  async copyAll(): Promise<void> {
    await this.renewCapture()
    for (const rows of this.#tables.toReversed()) await retryWhenBusy(() => rows.clear(this.copy))
    const query: RunQuery = async (sql, params) => {
      await this.renewCapture()
      return retryWhenBusy(() => this.original.readSnapshot(({ query }) => query(sql, params)))
    }
    for (const [place, rows] of this.#tables.entries()) {
      const others = this.#tables.slice(place + 1)
      this.copiedRows += await this.#copyTable(query, rows, async (upto) => {
        // What changed where nothing was read yet is read as it is then.
        const isAhead = (of: TableRows, key: RowKey) =>
          others.includes(of) || (of === rows && !!upto && of.isAfter(key, upto))
        // Others go on changing: who waited until they pause would wait for ever.
        while ((await this.#readChanges(query, isAhead)) === MAX_CHANGES_PER_READ);
      })
    }
  }

  /** To be called at least every minute from `begin` to the end. */
  async renewCapture(): Promise<void> {
    if (performance.now() < this.#renewedAt + RENEW_INTERVAL_MS) return
    await retryWhenBusy(() => this.original.captureChanges())
    this.#renewedAt = performance.now()
  }

  /**
   * Brings over what was changed up to one state of the original, page by page, until so many milliseconds have passed.
   * Returns how many rows are left that may differ from that state.
   */
  async applyChanges(original: RunQuery, ms: number): Promise<number> {
    const until = performance.now() + ms
    // First all is heard: what changes often is brought over once.
    while (await this.#readChanges(original));
    for (let stalledRounds = 0; this.#dueCount && performance.now() < until; ) {
      const before = this.#dueCount
      await this.#copyDue(original)
      if (this.#dueCount < before) continue
      if (++stalledRounds > MAX_STALLED_ROUNDS) throw new Error('The copy does not converge with the original.')
      await this.#resolveConflicts(original)
    }
    return this.#dueCount
  }

  get #dueCount() {
    return this.#due.values().reduce((sum, { size }) => sum + size, 0)
  }

  /** Writes all rows of a table, and notes what the copy has otherwise then. Returns how many there are. */
  async #copyTable(original: RunQuery, rows: TableRows, afterPage?: (upto?: RowKey) => Promise<void>): Promise<number> {
    let count = 0
    for await (const page of rows.readPages(original, {}, COPY_PAGE_ROWS)) {
      await retryWhenBusy(() => this.copy.runExclusive((asking) => applyRows(asking, rows.upsertSql, page.rows)))
      const copiedPage = await retryWhenBusy(() =>
        this.copy.readSnapshot(({ query }) => rows.readFirst(query, page, 2 * COPY_PAGE_ROWS)),
      )
      if (checksum(copiedPage) !== checksum(page.rows))
        this.#markDue(rows, [...page.rows, ...copiedPage].map(rows.keyOf))
      await afterPage?.(page.through)
      count += page.rows.length
    }
    return count
  }

  #markDue(rows: TableRows, keys: RowKey[]) {
    for (const key of keys) this.#due.get(rows)!.set(encodeRow(key), key)
  }

  /** Notes the keys of the next changes, but not of those that are `ahead`. Returns how many changes there were. */
  async #readChanges(original: RunQuery, isAhead?: (rows: TableRows, key: RowKey) => boolean): Promise<number> {
    const next = `select number, name, key from ${CHANGED_ROWS_TABLE} where number > ? order by number limit ${MAX_CHANGES_PER_READ}`
    const changes = (await original(next, [this.#lastChange])) as [number, string, string][]
    for (const [number, name, key] of changes) {
      const rows = this.#tables.find(({ table }) => table.name === name)!
      const changed: RowKey = JSON.parse(key)
      if (!isAhead?.(rows, changed)) this.#markDue(rows, [changed])
      this.#lastChange = number
    }
    return changes.length
  }

  /**
   * Brings over some of what is due, of each table, in one transaction of the copy: what is gone goes first, for it may be in
   * the way of the rest. What the copy has as it is wanted then is due no more; the rest is due after all others.
   */
  async #copyDue(original: RunQuery) {
    const began = performance.now()
    const pages = this.#tables
      .filter((rows) => this.#due.get(rows)!.size)
      .map((copiedRows) => ({
        rows: copiedRows,
        keys: [...this.#due.get(copiedRows)!.entries().take(this.#pageKeys)],
        wanted: [] as Row[],
      }))
    for (const page of pages) page.wanted = await page.rows.readByKeys(original, page.keys.map(dueKeyOf))
    const copyPages = (change: typeof applyRows) =>
      this.copy.runExclusive(async (asking) => {
        for (const { rows, keys, wanted } of pages.toReversed()) {
          const wantedByKey = indexByKey(rows, wanted)
          const removedKeys = keys.filter(([name]) => !wantedByKey.has(name))
          await change(asking, rows.removeSql, removedKeys.map(dueKeyOf))
        }
        for (const { rows, wanted } of pages) await change(asking, rows.upsertSql, wanted)
        const compared = pages.map(async ({ rows, keys, wanted }) => {
          const presentByKey = indexByKey(rows, await rows.readByKeys(asking.query, keys.map(dueKeyOf)))
          const expectedByKey = indexByKey(rows, wanted)
          return keys.filter(([name]) => presentByKey.get(name) !== expectedByKey.get(name))
        })
        return Promise.all(compared)
      })
    const differing = await copyPages(({ executeMany }, sql, list) => executeMany(sql, list)).catch((error) => {
      if (!isConstraintError(error)) throw error
      return copyPages(applyRows)
    })
    for (const [place, { rows, keys }] of pages.entries()) {
      const due = this.#due.get(rows)!
      for (const [name] of keys) due.delete(name)
      for (const [name, key] of differing[place]!) due.set(name, key)
    }
    const fittingKeys = (this.#pageKeys * TARGET_PAGE_MS) / (performance.now() - began)
    this.#pageKeys = Math.round(
      Math.min(Math.max(fittingKeys, this.#pageKeys / 2, DUE_PAGE_KEYS.min), this.#pageKeys * 2, DUE_PAGE_KEYS.max),
    )
  }

  /** Rows that are in each other's way, as two that exchanged what is unique, come anew with all that may refer to them. */
  async #resolveConflicts(original: RunQuery) {
    const conflicting = this.#tables.filter((rows) => this.#due.get(rows)!.size)
    await this.copy.runExclusive(async (asking) => {
      for (const rows of conflicting.toReversed())
        await applyRows(asking, rows.removeSql, [...this.#due.get(rows)!.values()])
    })
    for (const rows of this.#tables)
      if (hasReferenceTo(rows.table, conflicting)) {
        conflicting.push(rows)
        await this.#copyTable(original, rows)
      }
  }
}

/** Leaves out the rows that others are in the way of, which it finds by halves. */
async function applyRows(asking: Executor, sql: string, list: unknown[][]): Promise<void> {
  if (!list.length) return
  await asking.query('savepoint these')
  try {
    await asking.executeMany(sql, list)
    await asking.query('release these')
  } catch (error) {
    if (!isConstraintError(error)) throw error
    await asking.query('rollback to these')
    await asking.query('release these')
    if (list.length === 1) return
    const half = Math.ceil(list.length / 2)
    await applyRows(asking, sql, list.slice(0, half))
    await applyRows(asking, sql, list.slice(half))
  }
}

const dueKeyOf = ([, key]: [string, RowKey]) => key

const indexByKey = (rows: TableRows, list: Row[]) =>
  new Map(list.map((row) => [encodeRow(rows.keyOf(row)), encodeRow(row)]))

const hasReferenceTo = ({ references }: TableSchema, some: TableRows[]) =>
  some.some(({ table }) => references.includes(table.name))

const isConstraintError = (error: unknown) => error instanceof Conflict || error instanceof BrokenReference
