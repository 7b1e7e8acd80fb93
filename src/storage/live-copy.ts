import { BrokenReference, Conflict, retryWhenBusy } from './errors'
import type { Executor, RunQuery, TenantCopyConnection } from './port'
import { CHANGED_ROWS_TABLE, requireSameTables, type TableSchema } from './schema-catalog'
import { checksum, encodeRow, type Row, type RowKey, TableRows } from './table-rows'

const COPY_PAGE_ROWS = 1_000
const MAX_CHANGES_PER_READ = 5_000
const DUE_PAGE_KEYS = { min: 200, max: 4_000 } // keys of a table
const TARGET_PAGE_MS = 100 // a page should take no longer, because writers may wait for it
const RENEW_INTERVAL_MS = 10_000
const MAX_STALLED_ROUNDS = 10 // attempts to copy rows that conflict with each other

/**
 * Copies one database to another, of any engine, while it is written to. First every table is copied page by page, and
 * each page is read again and compared; then the rows that have changed since are copied by their keys, repeatedly, and
 * compared in the same way. Both are equal once writes have stopped and no change is left. Deleting a row may delete
 * rows that refer to it only in the copy: these have changed in the original, too, so they are due or will be.
 */
export class LiveCopy {
  #tables: TableRows[]
  /** The keys of rows that may differ. */
  #due: Map<TableRows, Map<string, RowKey>>
  /** The number of the last change that was read. */
  #lastChange = 0
  #renewedAt = Number.NEGATIVE_INFINITY
  /** How many keys of a table are copied together, adjusted to the speed of the databases. */
  #pageKeys = 500
  /** How many rows the first pass has copied. */
  copiedRows = 0

  constructor(
    private original: TenantCopyConnection,
    private copy: TenantCopyConnection,
  ) {
    this.#tables = requireSameTables(original.tables, copy.tables).map((table) => new TableRows(table))
    this.#due = new Map(this.#tables.map((rows) => [rows, new Map()]))
  }

  /**
   * Copies all tables, and deletes the rows of the copy first. Nothing else may use the copy from now on. `afterStep`
   * receives how much is copied, from 0 to 1, where that is known; what it throws ends the copy.
   */
  async copyAll(afterStep?: (fraction: number | undefined) => void): Promise<void> {
    await this.renewCapture()
    const total = afterStep && (await this.#countRows())
    for (const rows of this.#tables.toReversed()) {
      await retryWhenBusy(() => rows.clear(this.copy))
      afterStep?.(total && 0)
    }
    const query: RunQuery = async (sql, params) => {
      await this.renewCapture()
      return retryWhenBusy(() => this.original.readSnapshot(({ query }) => query(sql, params)))
    }
    for (const [place, rows] of this.#tables.entries()) {
      const others = this.#tables.slice(place + 1)
      const copiedBefore = this.copiedRows
      await this.#copyTable(query, rows, async (upto, count) => {
        this.copiedRows = copiedBefore + count
        afterStep?.(total && Math.min(1, this.copiedRows / total))
        // A change in a part that is not copied yet is copied with that part.
        const isAhead = (of: TableRows, key: RowKey) =>
          others.includes(of) || (of === rows && !!upto && of.isAfter(key, upto))
        // A partial read suffices: writers may never pause.
        while ((await this.#readChanges(query, isAhead)) === MAX_CHANGES_PER_READ);
      })
    }
  }

  /** Renews the capture of changes. Call it at least every minute from `copyAll` to the end. */
  async renewCapture(): Promise<void> {
    if (performance.now() < this.#renewedAt + RENEW_INTERVAL_MS) return
    await retryWhenBusy(() => this.original.captureChanges())
    this.#renewedAt = performance.now()
  }

  /**
   * Copies the changes up to one state of the original, page by page, for at most `ms` milliseconds. Returns how many
   * rows may still differ from that state.
   */
  async applyChanges(original: RunQuery, ms: number): Promise<number> {
    const until = performance.now() + ms
    // All changes are read first, so that a row that changes often is copied once.
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

  /** Copies all rows of a table, and marks those that differ afterwards as due. */
  async #copyTable(
    original: RunQuery,
    rows: TableRows,
    afterPage?: (upto: RowKey | undefined, count: number) => Promise<void>,
  ) {
    let count = 0
    for await (const page of rows.readPages(original, {}, COPY_PAGE_ROWS)) {
      await retryWhenBusy(() => this.copy.runExclusive((executor) => applyRows(executor, rows.upsertSql, page.rows)))
      const copiedPage = await retryWhenBusy(() =>
        this.copy.readSnapshot(({ query }) => rows.readFirst(query, page, 2 * COPY_PAGE_ROWS)),
      )
      if (checksum(copiedPage) !== checksum(page.rows))
        this.#markDue(rows, [...page.rows, ...copiedPage].map(rows.keyOf))
      count += page.rows.length
      await afterPage?.(page.through, count)
    }
  }

  /** Returns how many rows there are, or undefined where counting takes too long. */
  async #countRows(): Promise<number | undefined> {
    const counts = this.#tables.map(({ table }) => `(select count(*) from "${table.name}")`).join(' + ')
    const [[total] = []] = await this.original
      .readSnapshot(({ query }) => query(`select ${counts}`))
      .catch((): unknown[][] => [])
    return total as number | undefined
  }

  #markDue(rows: TableRows, keys: RowKey[]) {
    for (const key of keys) this.#due.get(rows)!.set(encodeRow(key), key)
  }

  /** Marks the keys of the next changes as due, except those that are ahead. Returns how many changes there were. */
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
   * Copies some due rows of each table in one transaction of the copy. Deletions come first, because a row to delete
   * may conflict with others. Rows that are then equal are no longer due; the others are due after the rest.
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
      this.copy.runExclusive(async (executor) => {
        for (const { rows, keys, wanted } of pages.toReversed()) {
          const wantedByKey = indexByKey(rows, wanted)
          const removedKeys = keys.filter(([name]) => !wantedByKey.has(name))
          await change(executor, rows.removeSql, removedKeys.map(dueKeyOf))
        }
        for (const { rows, wanted } of pages) await change(executor, rows.upsertSql, wanted)
        const compared = pages.map(async ({ rows, keys, wanted }) => {
          const presentByKey = indexByKey(rows, await rows.readByKeys(executor.query, keys.map(dueKeyOf)))
          const expectedByKey = indexByKey(rows, wanted)
          return keys.filter(([name]) => presentByKey.get(name) !== expectedByKey.get(name))
        })
        return Promise.all(compared)
      })
    const differing = await copyPages(async ({ executeMany }, sql, list) => void (await executeMany(sql, list))).catch(
      (error) => {
        if (!isConstraintError(error)) throw error
        return copyPages(applyRows)
      },
    )
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

  /**
   * Resolves conflicts between rows, such as two that swapped a unique value: they are deleted, and copied again with
   * all tables that refer to them.
   */
  async #resolveConflicts(original: RunQuery) {
    const conflicting = this.#tables.filter((rows) => this.#due.get(rows)!.size)
    await this.copy.runExclusive(async (executor) => {
      for (const rows of conflicting.toReversed())
        await applyRows(executor, rows.removeSql, [...this.#due.get(rows)!.values()])
    })
    for (const rows of this.#tables)
      if (hasReferenceTo(rows.table, conflicting)) {
        conflicting.push(rows)
        await this.#copyTable(original, rows)
      }
  }
}

/** Runs a statement for many rows, and leaves out those that violate a constraint, which it finds by bisection. */
async function applyRows(executor: Executor, sql: string, list: unknown[][]): Promise<void> {
  if (!list.length) return
  await executor.query('savepoint these')
  try {
    await executor.executeMany(sql, list)
    await executor.query('release these')
  } catch (error) {
    if (!isConstraintError(error)) throw error
    await executor.query('rollback to these')
    await executor.query('release these')
    if (list.length === 1) return
    const half = Math.ceil(list.length / 2)
    await applyRows(executor, sql, list.slice(0, half))
    await applyRows(executor, sql, list.slice(half))
  }
}

const dueKeyOf = ([, key]: [string, RowKey]) => key

const indexByKey = (rows: TableRows, list: Row[]) =>
  new Map(list.map((row) => [encodeRow(rows.keyOf(row)), encodeRow(row)]))

const hasReferenceTo = ({ references }: TableSchema, targets: TableRows[]) =>
  targets.some(({ table }) => references.includes(table.name))

const isConstraintError = (error: unknown) => error instanceof Conflict || error instanceof BrokenReference
