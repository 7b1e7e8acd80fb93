import type { Reach } from '../blueprints/rules'
import type { Condition, Target, Test } from './query'

/** A piece of a statement with the values of its question marks. */
export type Part = { sql: string; params: unknown[] }

export type FieldTarget = Extract<Target, { at: 'field' }>

/** A condition that the index can answer. */
export type Indexed = { target: FieldTarget } & Test

export const isIndexed = (condition: Condition): condition is Indexed =>
  condition.target.at === 'field' && condition.target.indexed && (condition.is === 'in' || condition.is === 'between')

/** The rows of the index (`i`) that meet a condition. */
export const indexWhere = (condition: Indexed) =>
  and([
    part('i.field = ? and i.path = ?', condition.target.field.number, condition.target.path),
    valueIs('i.value', condition),
  ])

/** The entities (`e`) within reach. */
export function within(reach: Reach): Part[] {
  if (reach.all) return []
  const ways = [
    ...(reach.user === undefined ? [] : [part('e."user" = ?', reach.user)]),
    ...(reach.workspace === undefined ? [] : [part('e.workspace = ?', reach.workspace)]),
  ]
  if (!ways.length) return [part('1 = 0')]
  return [part(`(${ways.map(({ sql }) => sql).join(' or ')})`, ...ways.flatMap(({ params }) => params))]
}

/** Whether a condition holds for the entity `e`. */
export function holds(condition: Condition): Part {
  const { target, ...test } = condition
  if (test.is === 'present' || test.is === 'absent') {
    if (target.at === 'field' && target.path) return hasSome(target, test.is)
    const { sql, params } = value(target)
    return part(`${sql} is ${test.is === 'present' ? 'not null' : 'null'}`, ...params)
  }
  if (target.at === 'field' && !target.single) return holdsForSome(target, test)
  return valueIs(value(target), test)
}

/** For lists and objects: whether it holds for one of the values, or with `not in` for none. */
function holdsForSome(target: FieldTarget, condition: Test): Part {
  const where = [part('x.field = ? and x.path = ?', target.field.number, target.path)]
  if (condition.is === 'between') {
    const { sql, params } = and([...where, valueIs('x.value', condition)])
    return part(`e.seq in (select x.entity from entity_index x where ${sql})`, ...params)
  }
  const wanted = valueIs('x.value', { ...condition, is: 'in' })
  const { sql, params } = and([...where, wanted, part('x.created = e.created and x.entity = e.seq')])
  // Not by `exists`, which PostgreSQL turns into a join, and may look through all rows of the field for each entity.
  const found = condition.is === 'not in' ? 'null' : 'not null'
  return part(`(select 1 from entity_index x where ${sql} limit 1) is ${found}`, ...params)
}

function hasSome({ field, path }: FieldTarget, is: 'present' | 'absent'): Part {
  const rows = 'select x.entity from entity_index x where x.field = ? and x.path = ?'
  return part(`e.seq ${is === 'present' ? 'in' : 'not in'} (${rows})`, field.number, path)
}

/** Whether a text, in the index or of an entity, meets a condition. */
export function valueIs(at: string | Part, condition: Test): Part {
  const of = typeof at === 'string' ? part(at) : at
  const compared = (sql: string, ...params: unknown[]) => part(`${of.sql} ${sql}`, ...of.params, ...params)
  if (condition.is === 'between') {
    const { from, to } = condition
    return and([
      ...(from ? [compared(`${from.open ? '>' : '>='} ?`, from.value)] : []),
      ...(to ? [compared(`${to.open ? '<' : '<='} ?`, to.value)] : []),
    ])
  }
  const values = padded(condition.values)
  if (!condition.values.length) return part(condition.is === 'in' ? '1 = 0' : '1 = 1')
  const list = values.map(() => '?').join(', ')
  if (condition.is === 'in')
    return values.length === 1 ? compared('= ?', ...values) : compared(`in (${list})`, ...values)
  return part(`(${of.sql} is null or ${of.sql} not in (${list}))`, ...of.params, ...of.params, ...values)
}

/** What an entity (`e`) has there, as it is compared. */
export const value = (target: Target): Part =>
  target.at === 'column' ? part(target.column) : part('e.keys ->> ?', target.label)

export const part = (sql: string, ...params: unknown[]): Part => ({ sql, params })
const joined = (parts: Part[], by: string) =>
  part(parts.map(({ sql }) => sql).join(by), ...parts.flatMap(({ params }) => params))
export const and = (parts: Part[]) => joined(parts, ' and ')
export const list = (parts: Part[]) => joined(parts, ', ')

/** One of these values. */
export function oneOf(sql: string, values: (string | number)[]): Part {
  const params = padded(values)
  return part(`${sql} in (${params.map(() => '?').join(', ')})`, ...params)
}

/** None of these values. */
export function noneOf(sql: string, values: (string | number)[]): Part {
  const one = oneOf(sql, values)
  return part(`not (${one.sql})`, ...one.params)
}

/** Lists of about the same length become as long, by their last value, so that few statements have to be remembered. */
export function padded<Value>(values: Value[]): Value[] {
  let length = 1
  while (length < values.length) length *= 4
  return Array.from({ length }, (_, at) => values[Math.min(at, values.length - 1)]!)
}

/** Lists of values for one statement each; engines take 32,000 values at most. */
export const inPortions = <Value>(values: Value[]) =>
  Array.from({ length: Math.ceil(values.length / PORTION) }, (_, at) => values.slice(at * PORTION, (at + 1) * PORTION))

const PORTION = 4_096

/** The first of these, as many as are `most` together, and at least one. */
export function fitting<Row>(rows: Row[], most: number, sizeOf: (row: Row) => number): Row[] {
  let size = 0
  const end = rows.findIndex((row, index) => {
    size += sizeOf(row)
    return index > 0 && size > most
  })
  return end < 0 ? rows : rows.slice(0, end)
}
