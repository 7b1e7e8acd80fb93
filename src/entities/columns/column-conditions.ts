import type { RowScope } from '../../blueprints/permissions'
import { isCreated } from '../query/order'
import { type Condition, type Order, type Predicate, type Target, targetKey } from '../query/target'
import { type Column, NO_VALUE } from './column'
import type { ColumnTable } from './column-table'
import type { OrderedRows } from './ordered-rows'

type Range = Extract<Predicate, { is: 'between' }>
export type RowTest = (row: number) => boolean
/** Consecutive places of sorted rows. */
export type Places = { rows: OrderedRows; from: number; to: number }

const ownerTarget = (column: 'e."user"' | 'e.workspace'): Target => ({ at: 'column', column })
export const USER = ownerTarget('e."user"')
export const WORKSPACE = ownerTarget('e.workspace')

const columnOf = (table: ColumnTable, target: Target): Column => table.columns.get(targetKey(target))!

/** Returns the rows in the order of a target, of which those without a value are the first. */
export const rowsBy = (table: ColumnTable, target: Target): OrderedRows =>
  isCreated(target) ? table.rows! : columnOf(table, target).rows!

/** Returns a row's value of a target. */
export const getValue = (table: ColumnTable, { target }: Order, row: number) =>
  isCreated(target) ? table.created[row]! : columnOf(table, target).valueAt(row)

/** Compares two rows by an order. Missing values come last. */
export function compareBy(table: ColumnTable, { target, descending }: Order): (one: number, other: number) => number {
  if (isCreated(target)) return (one, other) => (descending ? -1 : 1) * (table.created[one]! - table.created[other]!)
  const column = columnOf(table, target)
  return (oneRow, otherRow) => {
    const [one, other] = [column.codes[oneRow]!, column.codes[otherRow]!]
    if (one === other) return 0
    if (!one || !other) return one ? -1 : 1
    return descending ? column.compareCodes(other, one) : column.compareCodes(one, other)
  }
}

/** Compares a row with a value in an order. */
export function compareToValue(
  table: ColumnTable,
  { target, descending }: Order,
  value: string | number | null,
): RowComparison {
  const sign = descending ? -1 : 1
  if (isCreated(target)) return (row) => sign * (table.created[row]! - Number(value))
  const column = columnOf(table, target)
  if (value === null) return (row) => (column.codes[row] ? -1 : 0)
  const place = column.locate(value)
  return (row) => (column.codes[row] ? sign * column.compareToPlace(column.codes[row]!, place) : 1)
}

export type RowComparison = (row: number) => number

const MAX_PLACES = 100 // that are looked up one by one

/** Returns the places of the rows that meet a condition, unless they are scattered over many. */
export function findPlaces(
  table: ColumnTable,
  condition: Condition,
  rows: OrderedRows = rowsBy(table, condition.target),
): Places[] | undefined {
  const { target } = condition
  if (isCreated(target)) return condition.is === 'between' ? [findTimes(table, condition, rows)] : undefined
  const column = columnOf(table, target)
  const firstValue = () => rows.findPlace((row) => column.codes[row] !== NO_VALUE)
  if (condition.is === 'absent') return [{ rows, from: 0, to: firstValue() }]
  if (condition.is === 'present') return [{ rows, from: firstValue(), to: rows.length }]
  if (condition.is === 'not in' || (condition.is === 'in' && condition.values.length > MAX_PLACES)) return
  const findBound = (value: string | number, isPast: boolean) => {
    const place = column.locate(value)
    return rows.findPlace((row) => column.compareToPlace(column.codes[row]!, place) >= (isPast ? 1 : 0))
  }
  if (condition.is === 'in')
    return [...new Set(condition.values)].map((value) => ({
      rows,
      from: findBound(value, false),
      to: findBound(value, true),
    }))
  const { from, to } = condition as Range
  const begin = from ? findBound(from.value, from.open) : firstValue()
  return [{ rows, from: begin, to: Math.max(begin, to ? findBound(to.value, !to.open) : rows.length) }]
}

function findTimes(table: ColumnTable, { from, to }: Range, rows: OrderedRows): Places {
  const findBound = (time: number, isPast: boolean) =>
    rows.findPlace((row) => (isPast ? table.created[row]! > time : table.created[row]! >= time))
  const begin = from ? findBound(Number(from.value), from.open) : 0
  return { rows, from: begin, to: Math.max(begin, to ? findBound(Number(to.value), !to.open) : rows.length) }
}

/** Returns a test of whether a row passes all of some tests. */
export function joinTests([one, other, ...more]: RowTest[]): RowTest | undefined {
  if (!one || !other) return one
  if (!more.length) return (row) => one(row) && other(row)
  const rest = joinTests(more)!
  return (row) => one(row) && other(row) && rest(row)
}

export const countPlaces = (places: Places[]) => places.reduce((sum, { from, to }) => sum + to - from, 0)

/** Returns a test of whether a row meets a condition. It holds until the table changes. */
export function toRowTest(table: ColumnTable, condition: Condition): RowTest {
  const { target } = condition
  if (isCreated(target)) return toTimeTest(table, condition)
  const column = columnOf(table, target)
  const { codes } = column
  if (condition.is === 'present') return (row) => codes[row] !== NO_VALUE
  if (condition.is === 'absent') return (row) => codes[row] === NO_VALUE
  if (condition.is === 'between') {
    const [from, to] = [
      condition.from && column.locate(condition.from.value),
      condition.to && column.locate(condition.to.value),
    ]
    const [least, most] = [condition.from?.open ? 1 : 0, condition.to?.open ? -1 : 0]
    return (row) => {
      const code = codes[row]!
      return (
        code !== NO_VALUE &&
        (!from || column.compareToPlace(code, from) >= least) &&
        (!to || column.compareToPlace(code, to) <= most)
      )
    }
  }
  const wanted = condition.values.flatMap((value) => column.findCode(value) ?? [])
  const isIn = condition.is === 'in'
  if (wanted.length === 1) return isIn ? (row) => codes[row] === wanted[0] : (row) => codes[row] !== wanted[0]
  const all = new Set(wanted)
  return (row) => all.has(codes[row]!) === isIn
}

function toTimeTest({ created }: ColumnTable, condition: Condition): RowTest {
  if (condition.is === 'present' || condition.is === 'absent') return () => condition.is === 'present'
  if (condition.is !== 'between') {
    const all = new Set(condition.values.map(Number))
    return (row) => all.has(created[row]!) === (condition.is === 'in')
  }
  const { from, to } = condition
  const isAfter = (time: number) => !from || (from.open ? time > Number(from.value) : time >= Number(from.value))
  const isBefore = (time: number) => !to || (to.open ? time < Number(to.value) : time <= Number(to.value))
  return (row) => isAfter(created[row]!) && isBefore(created[row]!)
}

/** Returns the owner columns that a row scope depends on. */
export function scopeTargets(rowScope: RowScope): Target[] {
  if (rowScope.all) return []
  const { user, within, workspace } = rowScope
  return [
    ...(user === undefined ? [] : [USER]),
    ...(within === undefined && workspace === undefined ? [] : [WORKSPACE]),
  ]
}

/** Returns the conditions of a row scope of one owner, or a test where it allows alternatives. */
export function splitScope(table: ColumnTable, rowScope: RowScope): { conditions: Condition[]; test?: RowTest } {
  if (rowScope.all) return { conditions: [] }
  const { user, within, workspace } = rowScope
  const equals = (target: Target, value: string): Condition => ({ target, is: 'in', values: [value] })
  const own =
    user === undefined ? [] : [equals(USER, user), ...(within === undefined ? [] : [equals(WORKSPACE, within)])]
  if (workspace === undefined) return own.length ? { conditions: own } : { conditions: [], test: () => false }
  if (!own.length) return { conditions: [equals(WORKSPACE, workspace)] }
  const ownTests = own.map((one) => toRowTest(table, one))
  const isWithin = toRowTest(table, equals(WORKSPACE, workspace))
  return { conditions: [], test: (row) => isWithin(row) || ownTests.every((test) => test(row)) }
}
