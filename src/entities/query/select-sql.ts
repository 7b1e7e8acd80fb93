import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import type { Db } from '../../storage/port'
import { and, commaList, fragment, type SqlFragment } from '../store/sql-fragments'
import type { CursorPosition } from './cursor'
import { afterPositionSql, type OrderTerm, orderBySql, type SortPosition } from './order'
import type { Query } from './query-parser'
import { filterSql, type Scan } from './scans'
import type { Order } from './target'

/** What is to be found: these columns of at most so many. Equals come by time the way of `first`, or of the first order. */
export type FindRequest = {
  db: Db
  columns: string[]
  model: Model
  rowScope: RowScope
  query: Query
  limit: number
  first?: Order
}

export type FindResult<Row> = {
  rows: Row[]
  /** Where a page ends that has so many of them, one at least. */
  positionAfter(count: number): CursorPosition
}

export type Statement = { sql: string; params: unknown[] }

/** What a page shows of an order: so many, after some that are passed over, or after a place. */
export type PageWindow = { limit: number; skip: number; position?: SortPosition }

/** The columns of those that a scan leads to, and what there is of each term. */
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
