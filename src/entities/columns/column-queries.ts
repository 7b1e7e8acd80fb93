import type { RowScope } from '../../blueprints/permissions'
import { isCreated, type SortPosition } from '../query/order'
import type { PageWindow } from '../query/select-sql'
import type { Condition, Order, Target } from '../query/target'
import {
  compareBy,
  compareToValue,
  countPlaces,
  findPlaces,
  getValue,
  joinTests,
  type Places,
  type RowTest,
  rowsBy,
  splitScope,
  toRowTest,
} from './column-conditions'
import { columnLimits } from './column-limits'
import type { ColumnTable } from './column-table'
import { filterRows, mayKeepFilter } from './filtered-rows'

type Filter = { rowScope: RowScope; conditions: Condition[] }

/** The places that lead to the matching rows, and the test of what else has to hold. */
type Passage = { places: Places[]; rows: number; test: RowTest | undefined }

/** Chooses the condition that the fewest rows meet. */
function choosePassage(table: ColumnTable, { rowScope, conditions }: Filter): Passage {
  const scope = splitScope(table, rowScope)
  const all = [...conditions, ...scope.conditions]
  const rows = table.rows!
  let best = {
    condition: undefined as Condition | undefined,
    places: [{ rows, from: 0, to: rows.length }],
    rows: rows.length,
  }
  for (const condition of all) {
    const places = findPlaces(table, condition)
    if (!places) continue
    const count = countPlaces(places)
    if (count < best.rows || !best.condition) best = { condition, places, rows: count }
  }
  const tests = all.filter((one) => one !== best.condition).map((one) => toRowTest(table, one))
  if (scope.test) tests.push(scope.test)
  return { places: best.places, rows: best.rows, test: joinTests(tests) }
}

/** Means that the answer would visit more rows than allowed. */
export type TooManyRows = 'too many rows'

/** Returns how many entities match. */
export function countRows(
  table: ColumnTable,
  filter: Filter,
  maxRows = Number.POSITIVE_INFINITY,
): number | TooManyRows {
  const { places, rows, test } = choosePassage(table, filter)
  if (!test) return rows
  const scope = splitScope(table, filter.rowScope)
  const conditions = [...filter.conditions, ...scope.conditions]
  if (rows > columnLimits.fewRows && !scope.test && mayKeepFilter(conditions))
    return countFiltered(table, conditions, maxRows)
  if (rows > maxRows) return 'too many rows'
  let count = 0
  visit(places, (row) => {
    if (test(row)) count++
  })
  return count
}

/** Counts the rows that meet all conditions but a range, and their part that is in the range. */
function countFiltered(table: ColumnTable, conditions: Condition[], maxRows: number): number | TooManyRows {
  const range = conditions.find(({ is }) => is === 'between')
  const others = conditions.filter((one) => one !== range)
  const filtered = filterRows(table, others, range?.target ?? CREATED, maxRows)
  if (!filtered) return 'too many rows'
  return range ? countPlaces(findPlaces(table, range, filtered)!) : filtered.length
}

const CREATED: Target = { at: 'column', column: 'e.created' }

function visit(places: Places[], act: (row: number) => void) {
  for (const { rows, from, to } of places) for (let place = from; place < to; place++) act(rows.at(place))
}

/** An entity of a page with its position in the order. */
export type FoundRow = { seq: number; place: SortPosition }

/** Returns a page of the matching rows in an order. */
export function findRows(
  table: ColumnTable,
  filter: Filter & { order: Order[] },
  { limit, skip, position }: PageWindow,
  maxRows = Number.POSITIVE_INFINITY,
): FoundRow[] | TooManyRows {
  const { order } = filter
  const terms = toTerms(table, order)
  const isPast = position && createPositionTest(table, order, position)
  const passage = choosePassage(table, filter)
  const count = skip + limit
  // When the order leads to few matches, those of the passage are fewer.
  const first =
    passage.rows > columnLimits.fewRows
      ? findInOrder(table, filter, terms, isPast, { count, maxRows: Math.min(maxRows, passage.rows) })
      : undefined
  const rows = first ?? (passage.rows <= maxRows ? collect(passage, terms, isPast, count) : undefined)
  if (!rows) return 'too many rows'
  return rows.slice(skip).map((row) => ({ seq: table.seqs[row]!, place: toPosition(table, order, row) }))
}

type Comparison = (one: number, other: number) => number

/** Returns how rows are compared: by the order, then by time and number in the direction of its first term. */
function toTerms(table: ColumnTable, order: Order[]): Comparison {
  const terms = order.map((one) => compareBy(table, one))
  const sign = order[0]!.descending ? -1 : 1
  return (one, other) => {
    for (const compare of terms) {
      const compared = compare(one, other)
      if (compared) return compared
    }
    return sign * table.compareTime(one, other)
  }
}

/** Returns a test of whether a row comes after a position. */
function createPositionTest(table: ColumnTable, order: Order[], position: SortPosition): RowTest {
  const terms = order.map((one, at) => compareToValue(table, one, position[at] ?? null))
  const sign = order[0]!.descending ? -1 : 1
  const hasTime = order.some(({ target }) => isCreated(target))
  const [created, seq] = [Number(position.at(-2)), Number(position.at(-1))]
  return (row) => {
    for (const compare of terms) {
      const compared = compare(row)
      if (compared) return compared > 0
    }
    const time = hasTime ? 0 : table.created[row]! - created
    return sign * (time || table.seqs[row]! - seq) > 0
  }
}

const toPosition = (table: ColumnTable, order: Order[], row: number): SortPosition => [
  ...order.map((one) => getValue(table, one, row)),
  ...(order.some(({ target }) => isCreated(target)) ? [] : [table.created[row]!]),
  table.seqs[row]!,
]

/** Returns the first rows of a passage. */
function collect({ places, test }: Passage, compare: Comparison, isPast: RowTest | undefined, count: number): number[] {
  const first = new FirstRows(compare, count)
  visit(places, (row) => {
    if ((!test || test(row)) && (!isPast || isPast(row))) first.add(row)
  })
  return first.rows
}

/**
 * Tests the rows in the order of its first term. Of those that share its value, the first ones by the other terms are kept.
 * Returns undefined after too many rows.
 */
function findInOrder(
  table: ColumnTable,
  { rowScope, conditions, order }: Filter & { order: Order[] },
  compare: Comparison,
  isPast: RowTest | undefined,
  { count, maxRows }: { count: number; maxRows: number },
): number[] | undefined {
  const [first, ...others] = order as [Order, ...Order[]]
  const scope = splitScope(table, rowScope)
  const tests = [...conditions, ...scope.conditions].map((one) => toRowTest(table, one))
  const test = joinTests(scope.test ? [...tests, scope.test] : tests)
  const isSorted = others.every(({ target, descending }) => isCreated(target) && descending === first.descending)
  const compareFirst = compareBy(table, first)
  const found: number[] = []
  /** The first rows of those that share the value of the first term, unless the rows are sorted as a whole. */
  let ties = new FirstRows(compare, count)
  let tied: number | undefined
  const accept = (row: number): boolean => {
    if (!isSorted && tied !== undefined && compareFirst(tied, row)) {
      found.push(...ties.rows)
      ties = new FirstRows(compare, count - found.length)
    }
    tied = row
    if (found.length < count && (!test || test(row)) && (!isPast || isPast(row))) {
      if (isSorted) found.push(row)
      else ties.add(row)
    }
    return found.length < count
  }
  let left = maxRows
  for (const { rows, from, to } of inOrder(table, first, isSorted ? isPast : undefined)) {
    const step = first.descending ? -1 : 1
    for (let place = first.descending ? to - 1 : from; place >= from && place < to; place += step) {
      if (left-- <= 0) return
      if (!accept(rows.at(place))) return found
    }
  }
  return [...found, ...ties.rows]
}

/** Returns the rows in the order of a term, those without a value last, from the first that may come after a position. */
function inOrder(table: ColumnTable, { target, descending }: Order, isPast: RowTest | undefined): Places[] {
  const rows = rowsBy(table, target)
  const firstValue = findPlaces(table, { target, is: 'present' })?.[0]?.from ?? 0
  return [
    { rows, from: firstValue, to: rows.length },
    { rows, from: 0, to: firstValue },
  ].map((places) => (isPast ? startAfter(places, descending, isPast) : places))
}

/** Leaves out the rows up to a position. */
function startAfter({ rows, from, to }: Places, descending: boolean, isPast: RowTest): Places {
  let [low, high] = [from, to]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isPast(rows.at(middle)) === descending) low = middle + 1
    else high = middle
  }
  return descending ? { rows, from, to: low } : { rows, from: low, to }
}

/** The first rows of an order, of all that are added. */
class FirstRows {
  #rows: number[] = []
  /** The last of the first rows, once there are enough. */
  #last: number | undefined

  constructor(
    private readonly compare: Comparison,
    private readonly count: number,
  ) {}

  get rows() {
    this.#cut()
    return this.#rows
  }

  add(row: number) {
    if (this.#last !== undefined && this.compare(this.#last, row) < 0) return
    if (this.#rows.push(row) >= 2 * this.count + MIN_BUFFER) this.#cut()
  }

  #cut() {
    this.#rows.sort(this.compare)
    this.#rows.length = Math.min(this.#rows.length, this.count)
    if (this.#rows.length === this.count) this.#last = this.#rows.at(-1)
  }
}

const MIN_BUFFER = 64
