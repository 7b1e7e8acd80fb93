import { BoundedMap } from '../../core/bounded-map'
import { weakCached } from '../../core/weak-cache'
import { type Condition, type Target, targetKey } from '../query/target'
import { joinTests, rowsBy, toRowTest } from './column-conditions'
import type { ColumnTable, TableFollower } from './column-table'
import type { OrderedRows } from './ordered-rows'

const MAX_FILTERS = 16 // of a table
const MAX_VALUES = 20 // of a filter, all of which each change of the table looks up

/** The rows that meet some conditions, in the order of a target. They follow the changes of their table. */
class FilteredRows implements TableFollower {
  readonly rows: OrderedRows

  constructor(
    private readonly table: ColumnTable,
    private readonly conditions: Condition[],
    target: Target,
  ) {
    const test = this.#createTest()
    this.rows = rowsBy(table, target).filter(test)
  }

  get bytes() {
    return 4 * this.rows.length
  }

  leave(rows: number[]) {
    this.rows.remove(rows.filter(this.#createTest()))
  }

  enter(rows: number[]) {
    this.rows.add(rows.filter(this.#createTest()))
  }

  /** A test is about the values that the table has now. */
  #createTest = () => joinTests(this.conditions.map((one) => toRowTest(this.table, one)))!
}

const followersOf = weakCached((table: ColumnTable) => {
  const followers = new BoundedMap<string, FilteredRows>(MAX_FILTERS)
  table.followers = followers
  return followers
})

/** Tells whether the rows that meet some conditions may be kept. */
export const mayKeepFilter = (conditions: Condition[]) =>
  conditions.reduce((sum, one) => sum + ('values' in one ? one.values.length : 1), 0) <= MAX_VALUES

/**
 * Returns the rows that meet some conditions, at least one, in the order of a target. They are kept for later queries, which
 * so count them without visiting each. Returns undefined when more rows than allowed would be tested.
 */
export function filterRows(
  table: ColumnTable,
  conditions: Condition[],
  target: Target,
  maxRows: number,
): OrderedRows | undefined {
  const name = JSON.stringify([
    targetKey(target),
    ...conditions.map(({ target, ...test }) => [targetKey(target), test]),
  ])
  const followers = followersOf(table)
  const existing = followers.get(name)
  if (!existing && table.length > maxRows) return
  const filtered = existing ?? new FilteredRows(table, conditions, target)
  // The ones that were used last are removed last.
  followers.delete(name)
  followers.set(name, filtered)
  return filtered.rows
}
