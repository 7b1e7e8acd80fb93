import { and, commaList, fragment, oneOf } from '../store/sql-fragments'
import { thresholds } from './cardinality'
import { LiteralScan } from './literal-scan'
import { afterPositionSql, isCreated, type OrderTerm, orderBySql, type SortPosition, toOrderTerms } from './order'
import { splitIntoRanges } from './ranges'
import { fullScan, hasEntities, type Scan, toPassage } from './scans'
import { type FindRequest, type PageWindow, readRowsByIds } from './select-sql'
import { compareValues } from './value-order'

const FIRST_SLICE_ROWS = 250 // of a list by time, which may end early

/**
 * Finds a page in an order that no index has, or whose rows are filtered here. It reads the matching entities in slices,
 * and keeps the first ones of the order in memory, as many as the page needs.
 */
export async function sortInSlices(request: FindRequest, scan: Scan, window: PageWindow): Promise<unknown[][]> {
  const terms = toOrderTerms(request.query.order, fullScan(request.model).time, request.first)
  let { skip, position } = window
  // A page far behind the beginning is reached in steps, so that the memory is bounded.
  while (skip > thresholds.slice) {
    const passed = await findFirstPlaces(request, scan, terms, thresholds.slice, position)
    if (passed.length < thresholds.slice) return []
    position = passed.at(-1)
    skip -= thresholds.slice
  }
  const places = await findFirstPlaces(request, scan, terms, skip + window.limit, position)
  const ids = places.slice(skip).map((place) => place.at(-1) as number)
  return readRowsByIds(request, ids, terms, { limit: window.limit, skip: 0 })
}

/** Returns the first places after a position, at most `limit`, in order. */
async function findFirstPlaces(
  { db, model, rowScope, query, passage }: FindRequest,
  scan: Scan,
  terms: OrderTerm[],
  limit: number,
  position: SortPosition | undefined,
): Promise<SortPosition[]> {
  if (!limit) return []
  const { matching, ...rows } = toPassage(model, scan, rowScope, query.conditions)
  const { filter } = passage ?? {}
  const isUniform = terms.every(({ descending }) => descending === terms[0]!.descending)
  const isByTime = scan.by === 'time' && query.order.length === 1 && isCreated(query.order[0]!.target) && isUniform
  const after = position && !isByTime ? [afterPositionSql(terms, position)] : []
  const source = isByTime
    ? { ...rows, start: position, descending: terms[0]!.descending, first: FIRST_SLICE_ROWS }
    : rows
  const selected = commaList([...terms.map(({ of }) => of), ...(filter?.columns ?? []).map((one) => fragment(one))])
  const order = orderBySql(terms)
  const literals = filter?.literal && hasEntities(rows.from) ? new LiteralScan(filter.literal) : undefined
  let first: SortPosition[] = []
  for await (const range of splitIntoRanges(db, source)) {
    // The places found so far leave room only for earlier ones.
    const worst = first.length === limit ? first.at(-1) : undefined
    if (isByTime && worst) break
    const wanted = [...range.conditions, matching, ...after]
    const near = await literals?.find(db, rows.from, and(wanted))
    if (near && !near.length) continue
    const { sql, params } = and([...wanted, ...(near ? [oneOf('e.seq', near)] : [])])
    const select = `select ${selected.sql} from ${rows.from} where ${sql}`
    const found = filter
      ? await db.query(select, [...selected.params, ...params])
      : await db.query(`${select} order by ${order.sql} limit ?`, [
          ...[...selected.params, ...params, ...order.params],
          limit,
        ])
    const early = found.filter((row) => !worst || comparePlaces(terms, row as SortPosition, worst) < 0)
    const accepted = await filter?.test(db, early, terms.length)
    const better = early.filter((_, n) => !accepted || accepted[n]).map((row) => row.slice(0, terms.length))
    if (better.length)
      first = [...first, ...(better as SortPosition[])]
        .sort((one, other) => comparePlaces(terms, one, other))
        .slice(0, limit)
  }
  return first
}

/** Compares places as `orderBySql` does: missing values come last in both directions. */
function comparePlaces(terms: OrderTerm[], one: SortPosition, other: SortPosition): number {
  for (const [at, { descending }] of terms.entries()) {
    const [left = null, right = null] = [one[at], other[at]]
    if (left === right) continue
    if (left === null || right === null) return left === null ? 1 : -1
    return compareValues(left, right) * (descending ? -1 : 1)
  }
  return 0
}
