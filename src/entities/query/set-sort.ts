import { and, fragment, oneOf } from '../store/sql-fragments'
import { thresholds } from './cardinality'
import { findMatchingIds, IdSet, type IndexSource, orderedSource, scanIds, withoutValue, withValue } from './id-set'
import { byCreated, isCreated, matchesIndexOrder, type OrderTerm, type SortPosition, toOrderTerms } from './order'
import { fullScan } from './scans'
import { buildSelect, type FindRequest, type PageWindow } from './select-sql'
import type { Order } from './target'

/**
 * What is found where no condition is met by few, and no order has enough of those that match near its beginning: first all
 * that match, as a set in memory, by the indexes alone; then the first of these in the order, by the index of what it is
 * sorted by. Whatever is asked, that goes through each index once.
 */
export async function sortFromSet(request: FindRequest, window: PageWindow): Promise<unknown[][]> {
  const { db, model, rowScope, query } = request
  const first = request.first ?? query.order[0] ?? byCreated(true)
  const orders = [...query.order]
  if (!orders.some(({ target }) => isCreated(target))) orders.push({ ...byCreated(first.descending) })
  const terms = toOrderTerms(query.order, fullScan(model).time, request.first)
  const ids = await findMatchingIds(db, model, rowScope, query.conditions)
  return sortLevel({ ...request, orders, terms }, ids, 0, window)
}

/** Whether this can be done: all that is sorted by is in an index. */
export const canSortFromSet = ({ model, query }: FindRequest) =>
  query.search === undefined && query.order.every(({ target }) => orderedSource(model, target))

type SetSort = FindRequest & { orders: Order[]; terms: OrderTerm[] }

/** The rows of some of these, which agree in what is ordered by before `level`. */
async function sortLevel(by: SetSort, ids: IdSet, level: number, window: PageWindow): Promise<unknown[][]> {
  const { limit, skip, position } = window
  if (limit <= 0 || ids.size <= skip) return []
  if (ids.size <= thresholds.sorted) return readRows(by, ids, window)
  const order = by.orders[level]
  if (!order) return sortByNumber(by, ids, window)
  if (!position) return rowsOfHits(by, ids, level, window)
  const at = position[level] ?? null
  const without = () => withoutValue(by.db, by.model, ids, order.target)
  if (at === null) return sortLevel(by, await without(), level + 1, window)
  const ties = await sortLevel(by, await withValue(by.db, by.model, ids, order.target, at), level + 1, window)
  return [...ties, ...(await rowsOfHits(by, ids, level, { limit: limit - ties.length, skip, position }))]
}

/** Those that agree in everything but their numbers. */
function sortByNumber(by: SetSort, ids: IdSet, { limit, skip, position }: PageWindow) {
  const { descending } = by.terms.at(-1)!
  const passed = position?.at(-1) as number | undefined
  const ordered = [...ids].filter((one) => passed === undefined || (descending ? one < passed : one > passed))
  if (descending) ordered.reverse()
  return readRows(by, ordered.slice(skip, skip + limit), { limit, skip: 0 })
}

/** Those that have a value, beyond that of the place; then those without. */
async function rowsOfHits(by: SetSort, ids: IdSet, level: number, window: PageWindow): Promise<unknown[][]> {
  const { limit, skip } = window
  if (limit <= 0) return []
  const hits = await findFirstHits(by, ids, level, window)
  const rows = matchesIndexOrder(by.orders.slice(level), by.terms.at(-1)!)
    ? await readRows(by, hits.slice(skip), { limit, skip: 0 })
    : await sortTieGroups(by, ids, hits, level, { limit, skip })
  if (hits.length >= skip + limit || !by.terms[level]!.nullable) return rows
  const without = await withoutValue(by.db, by.model, ids, by.orders[level]!.target)
  const rest = { limit: limit - rows.length, skip: Math.max(0, skip - hits.length) }
  return [...rows, ...(await sortLevel(by, without, level + 1, rest))]
}

/** The first of them that an index has in the order of a level, beyond the place. */
async function findFirstHits({ db, model, orders, query }: SetSort, ids: IdSet, level: number, window: PageWindow) {
  const { limit, skip, position } = window
  const { target, descending } = orders[level]!
  const source = orderedSource(model, target, query.conditions)!
  const hits: number[] = []
  for await (const entities of scanIds(
    db,
    startAfter(source, descending, position?.[level]),
    descending,
    thresholds.stretch,
  ))
    for (const id of entities) {
      if (ids.has(id)) hits.push(id)
      if (hits.length === skip + limit) return hits
    }
  return hits
}

const startAfter = (source: IndexSource, descending: boolean, at: SortPosition[number] = null): IndexSource =>
  at === null
    ? source
    : { ...source, where: and([source.where, fragment(`${source.by[0]} ${descending ? '<' : '>'} ?`, at)]) }

/**
 * The same where the index doesn't have the rest of the order: as many as there are of one value are sorted by that, each
 * large group by itself. Only the first and the last that are asked for can be large.
 */
async function sortTieGroups(by: SetSort, ids: IdSet, hits: number[], level: number, { limit, skip }: PageWindow) {
  const rows: unknown[][] = []
  if (skip && hits.length > Math.max(skip, thresholds.sorted)) {
    const group = await findTieGroup(by, ids, hits[skip]!, level)
    const from = hits.findIndex(group.has)
    skip -= from
    hits = hits.slice(from)
    if (group.size > thresholds.sorted) {
      rows.push(...(await sortLevel(by, group, level + 1, { limit, skip })))
      hits = hits.filter((one) => !group.has(one))
      limit -= rows.length
      skip = 0
    }
  }
  if (!hits.length || limit <= 0) return rows
  const group = await findTieGroup(by, ids, hits[Math.min(hits.length, skip + limit) - 1]!, level)
  const before = hits.filter((one) => !group.has(one))
  rows.push(...(await readRows(by, before, { limit, skip })))
  const rest = { limit: limit - Math.max(0, before.length - skip), skip: Math.max(0, skip - before.length) }
  return [...rows, ...(await sortLevel(by, group, level + 1, rest))]
}

/** Those of them that have the same as one of them. */
async function findTieGroup({ db, model, terms, orders }: SetSort, ids: IdSet, id: number, level: number) {
  const { sql, params } = terms[level]!.of
  const [row] = await db.query(`select ${sql} from entities e where e.seq = ?`, [...params, id])
  const value = row?.[0] as string | number | null | undefined
  return value == null ? IdSet.of([id]) : withValue(db, model, ids, orders[level]!.target, value)
}

/** Asked once more for everything, for meanwhile it may have changed. */
async function readRows(by: SetSort, ids: Iterable<number>, window: PageWindow): Promise<unknown[][]> {
  const entities = [...ids]
  if (!entities.length) return []
  // Without the blueprint, no index of entities but that of their numbers is of use.
  const scan = { ...fullScan(by.model), where: oneOf('e.seq', entities) }
  const { sql, params } = buildSelect(by, scan, by.terms, window)
  return by.db.query(sql, params)
}
