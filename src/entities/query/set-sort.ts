import { and, fragment } from '../store/sql-fragments'
import { thresholds } from './cardinality'
import { findMatchingIds, IdSet, type IndexSource, orderedSource, scanIds, withoutValue, withValue } from './id-set'
import { byCreated, isCreated, matchesIndexOrder, type OrderTerm, type SortPosition, toOrderTerms } from './order'
import { fullScan } from './scans'
import { type FindRequest, type PageWindow, readRowsByIds } from './select-sql'
import type { Order } from './target'

/**
 * Finds a page when no condition is selective and the beginning of the order has too few matches. First it collects all
 * matches as a set in memory, by the indexes alone; then it reads the first of these in the order, by the index of the
 * sort field. For any query, this reads each index once.
 */
export async function sortFromSet(request: FindRequest, window: PageWindow): Promise<unknown[][]> {
  const { db, model, rowScope, query } = request
  const first = request.first ?? query.order[0]!
  const orders = [...query.order]
  if (!orders.some(({ target }) => isCreated(target))) orders.push({ ...byCreated(first.descending) })
  const terms = toOrderTerms(query.order, fullScan(model).time, request.first)
  const ids = await findMatchingIds(db, model, rowScope, query)
  return sortLevel({ ...request, orders, terms }, ids, 0, window)
}

/** Returns whether all sort fields are in an index, as `sortFromSet` requires. */
export const canSortFromSet = ({ model, query }: FindRequest) =>
  query.order.every(({ target }) => orderedSource(model, target))

/** A request with its whole order: `terms` are the SQL of `orders`, and at the end the number of the entity. */
type SetSort = FindRequest & { orders: Order[]; terms: OrderTerm[] }

/** Returns the page of a set of entities that have equal values in all terms before `level`. */
async function sortLevel(sort: SetSort, ids: IdSet, level: number, window: PageWindow): Promise<unknown[][]> {
  const { limit, skip, position } = window
  if (limit <= 0 || ids.size <= skip) return []
  if (ids.size <= thresholds.sorted) return readRows(sort, ids, window)
  const order = sort.orders[level]
  if (!order) return sortByNumber(sort, ids, window)
  if (!position) return readInIndexOrder(sort, ids, level, window)
  const at = position[level] ?? null
  const without = () => withoutValue(sort.db, sort.model, ids, order.target)
  if (at === null) return sortLevel(sort, await without(), level + 1, window)
  const ties = await sortLevel(sort, await withValue(sort.db, sort.model, ids, order.target, at), level + 1, window)
  return [...ties, ...(await readInIndexOrder(sort, ids, level, { limit: limit - ties.length, skip, position }))]
}

/** Returns the rows of entities that differ only in their numbers. */
function sortByNumber(sort: SetSort, ids: IdSet, { limit, skip, position }: PageWindow) {
  const { descending } = sort.terms.at(-1)!
  const passed = position?.at(-1) as number | undefined
  const ordered = [...ids].filter((one) => passed === undefined || (descending ? one < passed : one > passed))
  if (descending) ordered.reverse()
  return readRows(sort, ordered.slice(skip, skip + limit), { limit, skip: 0 })
}

/** Returns the rows of the entities with a value after the position, then of those without a value. */
async function readInIndexOrder(sort: SetSort, ids: IdSet, level: number, window: PageWindow): Promise<unknown[][]> {
  const { limit, skip } = window
  if (limit <= 0) return []
  const found = await findFirstIds(sort, ids, level, window)
  const rows = matchesIndexOrder(sort.orders.slice(level), sort.terms.at(-1)!)
    ? await readRows(sort, found.slice(skip), { limit, skip: 0 })
    : await sortTieGroups(sort, ids, found, level, { limit, skip })
  if (found.length >= skip + limit || !sort.terms[level]!.nullable) return rows
  const without = await withoutValue(sort.db, sort.model, ids, sort.orders[level]!.target)
  const rest = { limit: limit - rows.length, skip: Math.max(0, skip - found.length) }
  return [...rows, ...(await sortLevel(sort, without, level + 1, rest))]
}

/** Returns the first entities of the set in the index order of a level, after the position. */
async function findFirstIds({ db, model, orders, query }: SetSort, ids: IdSet, level: number, window: PageWindow) {
  const { limit, skip, position } = window
  const { target, descending } = orders[level]!
  const source = orderedSource(model, target, query.conditions)!
  const found: number[] = []
  for await (const entities of scanIds(
    db,
    startAfter(source, descending, position?.[level]),
    descending,
    thresholds.stretch,
  ))
    for (const id of entities) {
      if (ids.has(id)) found.push(id)
      if (found.length === skip + limit) return found
    }
  return found
}

const startAfter = (source: IndexSource, descending: boolean, at: SortPosition[number] = null): IndexSource =>
  at === null
    ? source
    : { ...source, where: and([fragment(`${source.by[0]} ${descending ? '<' : '>'} ?`, at), source.where]) }

/**
 * Sorts the found entities when the index does not have the rest of the order: each group of one value is sorted by the
 * remaining terms, a large group separately. Only the first and the last group of a page can be large.
 */
async function sortTieGroups(sort: SetSort, ids: IdSet, found: number[], level: number, { limit, skip }: PageWindow) {
  const rows: unknown[][] = []
  if (skip && found.length > Math.max(skip, thresholds.sorted)) {
    const group = await findTieGroup(sort, ids, found[skip]!, level)
    const from = found.findIndex((one) => group.has(one))
    skip -= from
    found = found.slice(from)
    if (group.size > thresholds.sorted) {
      rows.push(...(await sortLevel(sort, group, level + 1, { limit, skip })))
      found = found.filter((one) => !group.has(one))
      limit -= rows.length
      skip = 0
    }
  }
  if (!found.length || limit <= 0) return rows
  const group = await findTieGroup(sort, ids, found[Math.min(found.length, skip + limit) - 1]!, level)
  const before = found.filter((one) => !group.has(one))
  rows.push(...(await readRows(sort, before, { limit, skip })))
  const rest = { limit: limit - Math.max(0, before.length - skip), skip: Math.max(0, skip - before.length) }
  return [...rows, ...(await sortLevel(sort, group, level + 1, rest))]
}

/** Returns the entities of the set that have the same value at a level as the given entity. */
async function findTieGroup({ db, model, terms, orders }: SetSort, ids: IdSet, id: number, level: number) {
  const { sql, params } = terms[level]!.of
  const [row] = await db.query(`select ${sql} from entities e where e.seq = ?`, [...params, id])
  const value = row?.[0] as string | number | null | undefined
  return value == null ? IdSet.of([id]) : withValue(db, model, ids, orders[level]!.target, value)
}

const readRows = (sort: SetSort, ids: Iterable<number>, window: PageWindow) =>
  readRowsByIds(sort, [...ids], sort.terms, window)
