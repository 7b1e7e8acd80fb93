import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import { weakCached } from '../../core/weak-cache'
import type { Db } from '../../storage/port'
import { hasTrackingBegun, readPositionAtOnce } from '../changes/tracked-changes'
import type { Query } from '../query/query-parser'
import { hasLongBound, isText, type Target, targetKey } from '../query/target'
import { columnStatistics, findColumns, keepWithinLimit, noteColumnUse } from './column-cache'
import { scopeTargets } from './column-conditions'
import { columnLimits } from './column-limits'
import type { TooManyRows } from './column-queries'
import type { ColumnTable } from './column-table'

/** Lists that pass more rows are left to the database. */
export const MAX_SKIPPED = 10_000
const MAX_ROWS_AT_ONCE = 20_000 // rows that are visited without waiting for a turn
const TURN_MS = 2 // of steps, after which others get their turn
const MAX_TURNS = 1_000 // of one request, so that no flood of changes delays it for long
const PLAIN_COUNTS = 16 // of many rows of an index, before columns are read for them
const PAUSE_MS = 4 // between the steps of a read in the background

const COLUMNS = ['e.identifier', 'e."user"', 'e.workspace', 'e.created', 'e.updated']
const hasColumn = (target: Target) =>
  target.at === 'column' ? COLUMNS.includes(target.column) : target.single && !target.path

/** Returns the targets that a query depends on, or undefined when columns cannot answer it. */
const queryTargets = weakCached((query: Query): Target[] | undefined => {
  const { conditions, likes, order, search, words } = query
  if (likes.length || search !== undefined || words !== undefined || conditions.some(hasLongBound)) return
  const targets = [...conditions, ...order].map(({ target }) => target)
  return targets.every(hasColumn) ? targets : undefined
})

function find(db: Db, model: Model, rowScope: RowScope, query: Query) {
  const ofQuery = queryTargets(query)
  const columns = ofQuery && db.origin && findColumns(db.origin, model)
  if (!columns) return
  const targets = rowScope.all ? ofQuery : [...ofQuery, ...scopeTargets(rowScope)]
  const isUnordered = query.order.some(({ target }) => isText(target) && columns.hasLongTexts(target))
  return isUnordered || columns.refuses(targets) ? undefined : { origin: db.origin!, columns, targets }
}

/**
 * Returns what `answer` finds in the values that a query depends on, in turns with other costly work if it visits many rows.
 * Returns undefined when the values are not in memory, or `answer` finds nothing.
 */
export async function answerFromColumns<T>(
  db: Db,
  model: Model,
  rowScope: RowScope,
  query: Query,
  answer: (table: ColumnTable, maxRows: number) => T | TooManyRows | undefined,
): Promise<T | undefined> {
  const read = (maxRows: number) => {
    const table = openColumns(db, model, rowScope, query)
    return table && answer(table, maxRows)
  }
  const short = read(MAX_ROWS_AT_ONCE)
  const answered = short === 'too many rows' ? await db.runInTurn?.(() => read(Number.POSITIVE_INFINITY)) : short
  if (answered === undefined || answered === 'too many rows') return
  columnStatistics.reads++
  return answered
}

function openColumns(db: Db, model: Model, rowScope: RowScope, query: Query): ColumnTable | undefined {
  const found = find(db, model, rowScope, query)
  const table = found?.columns.open(found.origin, model, found.targets)
  if (!table) return
  noteColumnUse(found!.origin, found!.columns)
  if (found!.columns.hasGrown(columnLimits.rows)) keepWithinLimit(found!.columns)
  return found!.columns.refuses(found!.targets) ? undefined : table
}

/**
 * Tells whether columns can answer a query, and costly queries of its fields have come before. `isCounted` says that the query
 * itself was counted, because its read has begun.
 */
export function shouldUseColumns(
  db: Db,
  model: Model,
  rowScope: RowScope,
  query: Query,
  { isCounted = false } = {},
): boolean {
  const found = query.skip > MAX_SKIPPED ? undefined : find({ ...db, origin: db.origin ?? db }, model, rowScope, query)
  // Without the position, as in a request whose statements are traced, the database has to answer.
  if (!found || !readPositionAtOnce(found.origin, model.key)) return false
  if (found.columns.has(found.targets) || !columnLimits.isFirstPlain) return true
  return (isCounted ? (found.columns.queryCounts.get(fieldsOf(found)) ?? 0) - 1 : noteQuery(found)) > 0
}

/** Tells whether columns can answer a query, once they are read. */
export const mayUseColumns = (db: Db, model: Model, rowScope: RowScope, query: Query) =>
  !!find(db, model, rowScope, query)

/**
 * Reads the values that a query depends on, in turns with other costly work. Requests that need them at the same time share
 * the steps. Returns whether they are in memory now; those of large blueprints are not.
 */
export async function loadColumns(db: Db, model: Model, rowScope: RowScope, query: Query): Promise<boolean> {
  const wanted = find(db, model, rowScope, query)
  if (!db.runInTurn || !wanted || (!noteQuery(wanted) && columnLimits.isFirstPlain)) return false
  return readColumns({ db, model, rowScope, query }, db.runInTurn)
}

/**
 * Reads the values that a count depends on in the background, after several counts of the same fields have read many rows of an
 * index, because entities change between them.
 */
export function requestColumns(db: Db, model: Model, rowScope: RowScope, query: Query) {
  const origin = db.origin ?? db
  const request = { db: { ...origin, origin }, model, rowScope, query }
  const wanted = find(request.db, model, rowScope, query)
  if (!wanted || (countQuery(wanted, 'counts ') + 1) % PLAIN_COUNTS) return
  const runInPauses = async <T>(work: () => T) => {
    await Bun.sleep(PAUSE_MS)
    return work()
  }
  // Without columns, counts read the index.
  readColumns(request, runInPauses).catch(() => {})
}

type ColumnRequest = { db: Db; model: Model; rowScope: RowScope; query: Query }
type RunInTurn = NonNullable<Db['runInTurn']>

async function readColumns({ db, model, rowScope, query }: ColumnRequest, runInTurn: RunInTurn): Promise<boolean> {
  await hasTrackingBegun(db.origin!, model)
  for (let turns = 0; turns < MAX_TURNS; turns++) {
    // Found in the turn, because columns may be dropped while it is awaited.
    const result = await runInTurn(() => {
      const found = find(db, model, rowScope, query)
      return found ? takeSteps(found, model) : 'failed'
    })
    if (result !== 'more') return result === 'done'
  }
  return false
}

/** Notes a query whose values may have to be read, and returns how many queries of its fields came before. */
function noteQuery(found: FoundColumns): number {
  found.columns.want(found.targets)
  return countQuery(found)
}

/** Counts a query of a kind, and returns how many queries of its fields came before. */
function countQuery(found: FoundColumns, kind = ''): number {
  const name = kind + fieldsOf(found)
  const count = found.columns.queryCounts.get(name) ?? 0
  found.columns.queryCounts.set(name, count + 1)
  return count
}

const fieldsOf = ({ targets }: FoundColumns) => [...new Set(targets.map(targetKey))].sort().join()

type FoundColumns = NonNullable<ReturnType<typeof find>>

function takeSteps(found: FoundColumns, model: Model) {
  const until = performance.now() + TURN_MS
  for (;;) {
    const result = step(found, model, columnLimits.step)
    if (result !== 'more' || performance.now() > until) return result
  }
}

function step({ origin, columns, targets }: FoundColumns, model: Model, rows: number) {
  noteColumnUse(origin, columns)
  const result = columns.step(origin, model, targets, {
    rows,
    maxRows: columnLimits.rows,
    maxBytes: columnLimits.bytes / 3,
  })
  keepWithinLimit(columns)
  return result
}
