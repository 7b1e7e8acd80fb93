import type { Model } from '../blueprints/model'
import type { Reach } from '../blueprints/rules'
import type { Db } from '../storage/port'
import { and, list, type Part, part } from './conditions'
import { beyond, type Place, sorting, type Term } from './order'
import type { Order, Query } from './query'
import { filter, type Scan } from './scans'

/** What is to be found: these columns of at most so many. Equals come by time the way of `first`, or of the first order. */
export type Asked = {
  db: Db
  columns: string[]
  model: Model
  reach: Reach
  query: Query
  limit: number
  first?: Order
}

export type Statement = { sql: string; params: unknown[] }

/** What a page shows of an order: so many, after some that are passed over, or after a place. */
export type Stretch = { limit: number; skip: number; place?: Place }

/** The columns of those that a scan leads to, and what there is of each term. */
export function select(
  { columns, reach, query: { conditions } }: Asked,
  scan: Scan,
  terms: Term[],
  { limit, skip, place }: Stretch,
  more: Part[] = [],
): Statement {
  const told = list([...columns.map((column) => part(column)), ...terms.map(({ of }) => of)])
  const { sql, params } = and([filter(scan, reach, conditions), ...more, ...(place ? [beyond(terms, place)] : [])])
  const by = sorting(terms)
  return {
    sql: `select ${told.sql} from ${scan.from} where ${sql} order by ${by.sql} limit ? offset ?`,
    params: [...told.params, ...(scan.given ?? []), ...params, ...by.params, limit, skip],
  }
}
