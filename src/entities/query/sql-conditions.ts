import type { RowScope } from '../../blueprints/permissions'
import type { Condition, Predicate, Target } from './query-parser'

/** A piece of a statement with the values of its question marks. */
export type SqlFragment = { sql: string; params: unknown[] }

export type FieldTarget = Extract<Target, { at: 'field' }>

/** A condition that the index can answer. */
export type IndexCondition = { target: FieldTarget } & Predicate

export const isIndexCondition = (condition: Condition): condition is IndexCondition =>
  condition.target.at === 'field' && condition.target.indexed && (condition.is === 'in' || condition.is === 'between')

/** The rows of the index (`i`) that meet a condition. */
export const indexWhere = (condition: IndexCondition) =>
  and([
    fragment('i.field = ? and i.path = ?', condition.target.field.number, condition.target.path),
    comparisonSql('i.value', condition),
  ])

/** The entities (`e`) within reach. */
export function scopeSql(rowScope: RowScope): SqlFragment[] {
  if (rowScope.all) return []
  const alternatives = [
    ...(rowScope.user === undefined ? [] : [fragment('e."user" = ?', rowScope.user)]),
    ...(rowScope.workspace === undefined ? [] : [fragment('e.workspace = ?', rowScope.workspace)]),
  ]
  if (!alternatives.length) return [fragment('1 = 0')]
  return [
    fragment(`(${alternatives.map(({ sql }) => sql).join(' or ')})`, ...alternatives.flatMap(({ params }) => params)),
  ]
}

/** Whether a condition holds for the entity `e`. */
export function conditionSql(condition: Condition): SqlFragment {
  const { target, ...test } = condition
  if (test.is === 'present' || test.is === 'absent') {
    if (target.at === 'field' && target.path) return hasPartSql(target, test.is)
    const { sql, params } = valueSql(target)
    return fragment(`${sql} is ${test.is === 'present' ? 'not null' : 'null'}`, ...params)
  }
  if (target.at === 'field' && !target.single) return anyValueSql(target, test)
  return comparisonSql(valueSql(target), test)
}

/** For lists and objects: whether it holds for one of the values, or with `not in` for none. */
function anyValueSql(target: FieldTarget, condition: Predicate): SqlFragment {
  const where = [fragment('x.field = ? and x.path = ?', target.field.number, target.path)]
  if (condition.is === 'between') {
    const { sql, params } = and([...where, comparisonSql('x.value', condition)])
    return fragment(`e.seq in (select x.entity from entity_index x where ${sql})`, ...params)
  }
  const wanted = comparisonSql('x.value', { ...condition, is: 'in' })
  const { sql, params } = and([...where, wanted, fragment('x.created = e.created and x.entity = e.seq')])
  // Not by `exists`, which PostgreSQL turns into a join, and may look through all rows of the field for each entity.
  const expected = condition.is === 'not in' ? 'null' : 'not null'
  return fragment(`(select 1 from entity_index x where ${sql} limit 1) is ${expected}`, ...params)
}

function hasPartSql({ field, path }: FieldTarget, is: 'present' | 'absent'): SqlFragment {
  const rows = 'select x.entity from entity_index x where x.field = ? and x.path = ?'
  return fragment(`e.seq ${is === 'present' ? 'in' : 'not in'} (${rows})`, field.number, path)
}

/** Whether a text, in the index or of an entity, meets a condition. */
export function comparisonSql(at: string | SqlFragment, condition: Predicate): SqlFragment {
  const of = typeof at === 'string' ? fragment(at) : at
  const compare = (sql: string, ...params: unknown[]) => fragment(`${of.sql} ${sql}`, ...of.params, ...params)
  if (condition.is === 'between') {
    const { from, to } = condition
    return and([
      ...(from ? [compare(`${from.open ? '>' : '>='} ?`, from.value)] : []),
      ...(to ? [compare(`${to.open ? '<' : '<='} ?`, to.value)] : []),
    ])
  }
  const values = padValues(condition.values)
  if (!condition.values.length) return fragment(condition.is === 'in' ? '1 = 0' : '1 = 1')
  const list = values.map(() => '?').join(', ')
  if (condition.is === 'in') return values.length === 1 ? compare('= ?', ...values) : compare(`in (${list})`, ...values)
  return fragment(`(${of.sql} is null or ${of.sql} not in (${list}))`, ...of.params, ...of.params, ...values)
}

/** What an entity (`e`) has there, as it is compared. */
export const valueSql = (target: Target): SqlFragment =>
  target.at === 'column' ? fragment(target.column) : fragment('e.keys ->> ?', target.label)

export const fragment = (sql: string, ...params: unknown[]): SqlFragment => ({ sql, params })
const joinFragments = (parts: SqlFragment[], by: string) =>
  fragment(parts.map(({ sql }) => sql).join(by), ...parts.flatMap(({ params }) => params))
export const and = (parts: SqlFragment[]) => joinFragments(parts, ' and ')
export const commaList = (parts: SqlFragment[]) => joinFragments(parts, ', ')

/** One of these values. */
export function oneOf(sql: string, values: (string | number)[]): SqlFragment {
  const params = padValues(values)
  return fragment(`${sql} in (${params.map(() => '?').join(', ')})`, ...params)
}

/** None of these values. */
export function noneOf(sql: string, values: (string | number)[]): SqlFragment {
  const condition = oneOf(sql, values)
  return fragment(`not (${condition.sql})`, ...condition.params)
}

/** Lists of about the same length become as long, by their last value, so that few statements have to be remembered. */
export function padValues<Value>(values: Value[]): Value[] {
  let length = 1
  while (length < values.length) length *= 4
  return Array.from({ length }, (_, at) => values[Math.min(at, values.length - 1)]!)
}

/** Lists of values for one statement each; engines take 32,000 values at most. */
export const toChunks = <Value>(values: Value[]) =>
  Array.from({ length: Math.ceil(values.length / VALUES_PER_STATEMENT) }, (_, at) =>
    values.slice(at * VALUES_PER_STATEMENT, (at + 1) * VALUES_PER_STATEMENT),
  )

const VALUES_PER_STATEMENT = 4_096

/** The first of these, as many as are `most` together, and at least one. */
export function takeWithinSize<Row>(rows: Row[], limit: number, sizeOf: (row: Row) => number): Row[] {
  let size = 0
  const end = rows.findIndex((row, index) => {
    size += sizeOf(row)
    return index > 0 && size > limit
  })
  return end < 0 ? rows : rows.slice(0, end)
}
