import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import type { Db } from '../../storage/port'
import { type FoundRow, findRows } from '../columns/column-queries'
import { answerFromColumns, loadColumns, MAX_SKIPPED, mayUseColumns } from '../columns/column-reads'
import { noteIndexUse } from '../indexing/index-demand'
import { shownColumnSql } from '../store/serializer'
import { and, oneOf, toChunks } from '../store/sql-fragments'
import { type AccessPath, chooseAccessPath } from './access-path'
import { ESTIMATE_TTL_MS, estimateRows, thresholds } from './cardinality'
import { findCompoundRows, findRowsToSort, readCompoundRows, readSortedByTime } from './compound-index'
import type { CursorPosition } from './cursor'
import { type IndexWalk, type TieGroup, walkIndex } from './index-walk'
import { keepKnownTerms } from './known-terms'
import { byCreated, isCreated, type SortPosition, toOrderTerms } from './order'
import type { Query } from './query-parser'
import { findRanked, type RankedCursor } from './ranked-search'
import { createRowFilter } from './row-filter'
import { entityHasWordsSql, filterSql, fullScan, numberScan, textScan } from './scans'
import {
  buildSelect,
  type FilteredPassage,
  type FindRequest,
  type FindResult,
  type PageWindow,
  type Statement,
} from './select-sql'
import { canSortFromSet, sortFromSet } from './set-sort'
import { sortInSlices } from './slice-sort'
import { type Condition, isLongText, isText, type Order } from './target'
import { findRankedUnindexed } from './unindexed-search'

/**
 * Returns columns (of the table `e`) of the entities in the row scope that match a query, in its order: at most
 * `limit`, from the beginning or after a position. The chosen statement is cached as long as the estimates that it was
 * chosen by.
 */
export async function find<Row extends unknown[]>(
  db: Db,
  columns: string[],
  model: Model,
  rowScope: RowScope,
  query: Query,
  { limit = query.limit, after, first, passage }: FindOptions = {},
): Promise<FindResult<Row>> {
  const request = { db, columns, model, rowScope, query, limit, first, passage }
  if (query.ranked)
    return (query.words === undefined ? findRanked : findRankedUnindexed)<Row>(
      request,
      after as RankedCursor | undefined,
    )
  const toResult = (rows: unknown[][], isFiltered?: boolean): FindResult<Row> => ({
    rows: rows as Row[],
    isFiltered,
    positionAfter: (count) => ({ place: rows[count - 1]!.slice(columns.length) as SortPosition }),
  })
  const position = (after as { place: SortPosition } | undefined)?.place
  const window = { limit, skip: query.skip, position }
  const statements = getStatementCache(query)
  const name = JSON.stringify([columns, limit, rowScope])
  const cached = position ? undefined : statements.get(name)
  if (cached && cached.until > performance.now()) return toResult(await db.query(cached.sql, cached.params))

  const compound = first ? undefined : findCompoundRows(model, rowScope, query)
  if (compound && isExact(query, position)) {
    noteIndexUse(model, compound.usedIndex, compound.index.number)
    const page = await readCompoundRows({ ...request, ...compound }, window)
    if (page && areExact(query, page, columns.length)) return toResult(page)
  }
  const unsorted = first ? undefined : findRowsToSort(model, rowScope, query)
  const sorted = unsorted && (await readSortedByTime({ ...request, ...unsorted }, window))
  if (sorted) return toResult(sorted)
  const path = await chooseAccessPath(db, model, rowScope, query)
  const { scan } = path
  // Of all entities by time, the rest is read in one pass, too, once the beginning was read in vain.
  const isBounded = path.bounded && !(passage?.isDue && scan.by === 'time')
  const page = isBounded ? undefined : await findInSteps(request, path, window)
  if (page) return toResult(page.rows, page.isFiltered)
  const statement = buildSelect(request, scan, toOrderTerms(query.order, scan.time, first), window)
  if (!position) statements.set(name, { ...statement, until: performance.now() + ESTIMATE_TTL_MS })
  return toResult(await db.query(statement.sql, statement.params))
}

/** Tells whether the indexes have the order at a position: they lack that of long texts with the same beginning. */
const isExact = (query: Query, place: unknown[] = []) => areExact(query, [place], 0)

/** Tells the same for the positions of rows, which follow the columns. */
function areExact({ order }: Query, page: unknown[][], columns: number): boolean {
  for (const [n, { target }] of order.entries())
    if (isText(target)) for (const row of page) if (isLongText(target, row[columns + n])) return false
  return true
}

/**
 * Finds a page by values in memory, which are read there unless the blueprint is small or too large. They lack the order of long
 * texts with the same beginning.
 */
async function findInColumns(request: FindRequest, window: PageWindow): Promise<unknown[][] | undefined> {
  const { db, columns, model, rowScope, query } = request
  if (window.skip > MAX_SKIPPED || !isExact(query, window.position)) return
  const read = () =>
    answerFromColumns(db, model, rowScope, query, (table, maxRows) => {
      const found = findRows(table, { ...query, rowScope }, window, maxRows)
      return found === 'too many rows' ? found : toRows(request, found)
    })
  const page = (await read()) ?? ((await haveColumnsRead(request)) ? await read() : undefined)
  return page && areExact(query, page, columns.length) ? page : undefined
}

/** Reads the values of a query into memory, unless the blueprint is small or too large, and returns whether they are there. */
async function haveColumnsRead({ db, model, rowScope, query }: FindRequest): Promise<boolean> {
  const { from, where } = fullScan(model)
  if (!mayUseColumns(db, model, rowScope, query) || (await estimateRows(db, from, where)) < thresholds.few) return false
  return loadColumns(db, model, rowScope, query)
}

/** Returns the rows of a page, unless another process changed one of its entities at this moment. */
function toRows(request: FindRequest, found: FoundRow[]): unknown[][] | undefined {
  const { columns } = request
  if (columns.every((column) => column === 'e.seq'))
    return found.map(({ seq, place }) => [...columns.map(() => seq), ...place])
  const read = readShownAtOnce(request, found)
  return read && found.map(({ seq, place }) => [...read.get(seq)!, ...place])
}

/** Reads columns of entities before anything else runs, so that they are as those in memory. */
function readShownAtOnce({ db, columns }: FindRequest, found: { seq: number }[]): Map<number, unknown[]> | undefined {
  const { sql, params } = oneOf(
    'e.seq',
    found.map(({ seq }) => seq),
  )
  const rows = db.origin?.queryAtOnce?.(`select e.seq, ${columns.join(', ')} from entities e where ${sql}`, params)
  return rows?.length === found.length ? new Map(rows.map(([seq, ...values]) => [Number(seq), values])) : undefined
}

type FindOptions = { limit?: number; after?: CursorPosition; first?: Order; passage?: FilteredPassage }

/**
 * Finds a page of a broad query in bounded steps. Returns undefined when the blueprint is small, so that one statement
 * is enough.
 */
async function findInSteps(
  request: FindRequest,
  { indexWalk }: AccessPath,
  window: PageWindow,
): Promise<{ rows: unknown[][]; isFiltered?: true } | undefined> {
  const { db, model, query, columns, passage } = request
  const mayUseIndexes = isExact(query, window.position)
  const mayWalk = mayUseIndexes && !passage?.isDue
  const page = indexWalk && mayWalk && (await findByWalk(request, indexWalk, window))
  if (page && areExact(query, page, columns.length)) return { rows: page }
  const inMemory = request.first || passage ? undefined : await findInColumns(request, window)
  if (inMemory) return { rows: inMemory }
  const search = query.search && (await keepKnownTerms(db, model, query.search))
  if (!passage && canSortFromSet(request) && mayUseIndexes) {
    const sorted = await sortFromSet({ ...request, query: { ...query, search } }, window)
    if (areExact(query, sorted, columns.length)) return { rows: sorted }
  }
  const all = fullScan(model)
  if ((await estimateRows(db, all.from, all.where)) < thresholds.few) return
  const scan = search === undefined ? all : textScan(model, search)
  if (!passage) return { rows: await sortInSlices(request, scan, window) }
  const { limit, skip } = passage
  return { rows: await sortInSlices(request, scan, { ...window, limit, skip }), isFiltered: true }
}

/**
 * Finds a page by an index walk. When the page lies within a large group of entities that share the first sort value,
 * the group is queried as a list of its own, by the remaining order. Returns undefined when the walk does not find the
 * page.
 */
async function findByWalk(
  request: FindRequest,
  indexWalk: IndexWalk,
  window: PageWindow,
): Promise<unknown[][] | undefined> {
  const result = await walkIndex(request, indexWalk, window)
  if (!isTieGroup(result)) return result
  const { db, columns, model, rowScope, query, limit } = request
  const [first, ...order] = query.order as [Order, ...Order[]]
  if (!result.containsPage) return
  const { value } = result
  const conditions: Condition[] = [...query.conditions, { target: first.target, is: 'in', values: [result.value] }]
  const ties = byCreated((request.first ?? first).descending)
  const tieQuery: Query = { ...query, conditions, order: order.length ? order : [ties] }
  // When time comes first, it is also the last term of the order, which tells apart entities that are equal otherwise.
  const timed = isCreated(first.target) && !order.some(({ target }) => isCreated(target))
  const rest = window.position?.slice(1)
  const after =
    rest && window.position?.[0] === value ? { place: timed ? rest.toSpliced(-1, 0, value) : rest } : undefined
  const { rows } = await find<unknown[]>(db, columns, model, rowScope, tieQuery, {
    limit,
    after,
    first: request.first ?? first,
  })
  return rows.map((row) => (timed ? row.toSpliced(-2, 1) : row).toSpliced(columns.length, 0, value))
}

const isTieGroup = (result: unknown[][] | TieGroup | undefined): result is TieGroup => !!result && 'value' in result

type CachedStatement = Statement & { until: number }
const statementCache = new WeakMap<Query, Map<string, CachedStatement>>()
const MAX_CACHED_STATEMENTS = 100 // statements of one query, one for each row scope

function getStatementCache(query: Query) {
  const statements = statementCache.get(query)
  if (statements && statements.size < MAX_CACHED_STATEMENTS) return statements
  const fresh = new Map<string, CachedStatement>()
  statementCache.set(query, fresh)
  return fresh
}

/** Returns the stored JSON of entities by their numbers; entities that no longer match are missing. */
export const readShownByIds = async (db: Db, model: Model, rowScope: RowScope, query: Query, ids: number[]) =>
  new Map(
    (await readMatchingByIds(db, `e.seq, ${shownColumnSql(model)}`, model, rowScope, query, ids)) as [number, string][],
  )

/** Returns columns of those of the given entities that match. */
export async function readMatchingByIds(
  db: Db,
  columns: string,
  model: Model,
  rowScope: RowScope,
  query: Query,
  ids: number[],
): Promise<unknown[][]> {
  const words = query.search === undefined ? [] : [entityHasWordsSql(query.search)]
  const filter = createRowFilter(model, { likes: [], words: query.words })
  const filtered = filter?.columns ?? []
  const rows: unknown[][] = []
  for (const chunk of toChunks(ids)) {
    const scan = numberScan(model, chunk)
    const { sql, params } = and([filterSql(scan, rowScope, query.conditions), ...words])
    const read = await db.query(`select ${[...filtered, columns].join(', ')} from ${scan.from} where ${sql}`, params)
    const accepted = await filter?.test(db, read, 0)
    for (const [n, row] of read.entries()) if (!accepted || accepted[n]) rows.push(row.slice(filtered.length))
  }
  return rows
}
