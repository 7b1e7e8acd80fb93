import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import type { Db } from '../../storage/port'
import { and, commaList, fragment, oneOf, type SqlFragment } from '../store/sql-fragments'
import type { CursorPosition } from './cursor'
import { afterPositionSql, type OrderTerm, orderBySql, type SortPosition } from './order'
import type { Query } from './query-parser'
import type { RowFilter } from './row-filter'
import { filterSql, fullScan, type Scan } from './scans'
import type { Order } from './target'

/**
 * A request for the columns of at most `limit` entities. Ties are ordered by time, in the direction of `first` or of
 * the first order.
 */
export type FindRequest = {
  db: Db
  columns: string[]
  model: Model
  rowScope: RowScope
  query: Query
  limit: number
  first?: Order
  passage?: FilteredPassage
}

/**
 * What a request does whose rows are filtered here, once it has to read all rows that the database can tell: it filters
 * them in one pass. It `isDue` when the beginning of the order was read in vain.
 */
export type FilteredPassage = { filter: RowFilter; limit: number; skip: number; isDue: boolean }

export type FindResult<Row> = {
  rows: Row[]
  /** Whether these are the page of the passage. */
  isFiltered?: boolean
  /** Returns the position where a page of `count` rows, at least one, ends. */
  positionAfter(count: number): CursorPosition
}

export type Statement = { sql: string; params: unknown[] }

/** The window of a page in an order: at most `limit` rows, after `skip` rows or after a position. */
export type PageWindow = { limit: number; skip: number; position?: SortPosition }

/** Returns the statement that selects the columns of a scan's matching entities, and their values of all terms. */
export function buildSelect(
  { columns, rowScope, query: { conditions } }: FindRequest,
  scan: Scan,
  terms: OrderTerm[],
  { limit, skip, position }: PageWindow,
  more: SqlFragment[] = [],
): Statement {
  const selectList = commaList([...columns.map((column) => fragment(column)), ...terms.map(({ of }) => of)])
  const { sql, params } = and([
    filterSql(scan, rowScope, conditions),
    ...more,
    ...(position ? [afterPositionSql(terms, position)] : []),
  ])
  const by = orderBySql(terms)
  return {
    sql: `select ${selectList.sql} from ${scan.from} where ${sql} order by ${by.sql} limit ? offset ?`,
    params: [...selectList.params, ...(scan.fromParams ?? []), ...params, ...by.params, limit, skip],
  }
}

/**
 * Reads the given entities in the order of the terms. All conditions except words are checked again, because the
 * entities may have changed meanwhile.
 */
export async function readRowsByIds(
  request: FindRequest,
  ids: number[],
  terms: OrderTerm[],
  window: PageWindow,
): Promise<unknown[][]> {
  if (!ids.length) return []
  // Without the blueprint, the only usable index of entities is that of their numbers.
  const scan = { ...fullScan(request.model), where: oneOf('e.seq', ids) }
  const { sql, params } = buildSelect(request, scan, terms, window)
  return request.db.query(sql, params)
}
