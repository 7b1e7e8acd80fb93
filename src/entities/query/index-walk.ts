import { and, fragment, type SqlFragment } from '../store/sql-fragments'
import { thresholds } from './cardinality'
import type { IndexSource } from './id-set'
import { matchesIndexOrder, type OrderTerm, type SortPosition, toOrderTerms } from './order'
import { fullScan, type Scan } from './scans'
import { buildSelect, type FindRequest, type PageWindow } from './select-sql'
import { type Condition, isLongText, isText, type Target } from './target'

/**
 * An index in the order of the first sort field, and the conditions that all its rows meet. The target is that of the
 * sort field, and missing for the time of creation.
 */
export type IndexWalk = { source: IndexSource; covered: Condition[]; target?: Target }

/** A group of entities with the same value that is too large to sort. It contains the whole page or only its end. */
export type TieGroup = { value: string | number; containsPage: boolean }

/**
 * Reads a page near the beginning of an index, checking a limited number of rows one by one. Returns undefined when too
 * few of them match, and a tie group when very many share the first sort value but the order has more fields.
 */
export async function walkIndex(
  request: FindRequest,
  { source, covered }: IndexWalk,
  window: PageWindow,
): Promise<unknown[][] | TieGroup | undefined> {
  const { db, model, query, columns, first } = request
  const { limit, skip, position } = window
  if (!limit) return []
  const need = limit + skip
  if (need > 2 * thresholds.stretch || position?.[0] === null) return
  const full = fullScan(model)
  const [term, ...terms] = toOrderTerms(query.order, full.time, first) as [OrderTerm, ...OrderTerm[]]
  const isIndexOrder = matchesIndexOrder(query.order, terms.at(-1)!)
  const from = position ? startAt(source, term, position, isIndexOrder) : source
  // Texts are read from the entities where the index may have only their beginning.
  const indexedValue = isText(query.order[0]!.target)
    ? fragment(`case when octet_length(n.value) > 256 then ${term.of.sql} else n.value end`, ...term.of.params)
    : fragment('n.value')
  const readFirst = (source: IndexSource, size: number) => {
    const rows = orderedRowsSql(source, `${source.by[0]} as value, ${source.entity} as seq`, term)
    const scan: Scan = {
      ...full,
      covered,
      from: `(${rows.sql} limit ?) as n cross join entities e`,
      where: fragment('e.seq = n.seq'),
      fromParams: [...rows.params, size],
    }
    const { sql, params } = buildSelect(request, scan, [{ ...term, of: indexedValue }, ...terms], window)
    return db.query(sql, params)
  }
  const maxRows = thresholds.stretch + 4 * need
  // When nearly all entities match, reading more than the page needs would be wasted; groups, however, need more rows.
  for (const size of [...(isIndexOrder ? [1.2 * need] : []), need + maxRows / 8, maxRows].map(Math.ceil)) {
    const rows = await readFirst(from, size)
    if (rows.length < limit) continue
    if (isIndexOrder) return rows
    const [start, end] = [rows[0]![columns.length], rows.at(-1)![columns.length]] as [string, string]
    if (isLongText(query.order[0]!.target, start) || isLongText(query.order[0]!.target, end)) return
    const { sql, params } = orderedRowsSql(from, from.by[0]!, term)
    const [cut] = await db.query(`${sql} limit 1 offset ?`, [...params, size - 1])
    if (!cut || cut[0] !== end) return rows
    // The rest of the last group may sort before the part of it that was found.
    const group = { ...from, where: and([from.where, fragment(`${from.by[0]} = ?`, end)]) }
    const [more] = await db.query(`select 1 from ${group.from} where ${group.where.sql} limit 1 offset ?`, [
      ...group.where.params,
      thresholds.few,
    ])
    return more ? { value: end, containsPage: start === end && !skip } : readFirst(from, size + thresholds.few)
  }
}

function orderedRowsSql({ from, where, by }: IndexSource, columns: string, { descending }: OrderTerm): SqlFragment {
  const order = by.map((one) => `${one} ${descending ? 'desc' : 'asc'}`).join(', ')
  return fragment(`select ${columns} from ${from} where ${where.sql} order by ${order}`, ...where.params)
}

/** Skips the rows before the position, as far as the index can tell. */
function startAt(
  source: IndexSource,
  { descending }: OrderTerm,
  position: SortPosition,
  isIndexOrder: boolean,
): IndexSource {
  const sign = descending ? '<' : '>'
  const past =
    isIndexOrder && position.length === source.by.length
      ? fragment(`(${source.by.join(', ')}) ${sign} (${position.map(() => '?').join(', ')})`, ...position)
      : fragment(`${source.by[0]} ${sign}= ?`, position[0])
  return { ...source, where: and([past, source.where]) }
}
