import type { RowScope } from '../../blueprints/permissions'
import { idSql } from '../store/serializer'
import { and, fragment, padValues, type SqlFragment } from '../store/sql-fragments'
import { getDerivableType } from '../store/stored-keys'
import { type Condition, hasLongBound, isText, type Predicate, type Target } from './target'

export type FieldTarget = Extract<Target, { at: 'field' }>

/** A condition that the index can answer. */
export type IndexCondition = { target: FieldTarget } & Predicate

export const isIndexCondition = (condition: Condition): condition is IndexCondition =>
  condition.target.at === 'field' && condition.target.indexed && (condition.is === 'in' || condition.is === 'between')

/** Returns the SQL for the index rows (`i`) that meet a condition. */
export const indexWhere = (condition: IndexCondition) =>
  and([
    fragment('i.field = ? and i.path = ?', condition.target.field.number, condition.target.path),
    comparisonSql('i.value', condition),
  ])

/** Returns the SQL for the entities (`e`) in a row scope. */
export function scopeSql(rowScope: RowScope): SqlFragment[] {
  if (rowScope.all) return []
  const alternatives = [
    ...(rowScope.user === undefined ? [] : [ownSql(rowScope.user, rowScope.within)]),
    ...(rowScope.workspace === undefined ? [] : [fragment('e.workspace = ?', rowScope.workspace)]),
  ]
  if (!alternatives.length) return [fragment('1 = 0')]
  return [
    fragment(`(${alternatives.map(({ sql }) => sql).join(' or ')})`, ...alternatives.flatMap(({ params }) => params)),
  ]
}

const ownSql = (user: string, within: string | undefined) =>
  within === undefined ? fragment('e."user" = ?', user) : fragment('(e."user" = ? and e.workspace = ?)', user, within)

/** Returns the SQL for whether a condition holds for the entity `e`. */
export function conditionSql(condition: Condition): SqlFragment {
  const { target, ...test } = condition
  if (test.is === 'present' || test.is === 'absent') {
    if (target.at === 'field' && target.path) return hasPartSql(target, test.is)
    const { sql, params } = valueSql(target)
    return fragment(`${sql} is ${test.is === 'present' ? 'not null' : 'null'}`, ...params)
  }
  if (target.at === 'field' && !target.single) return anyValueSql(target, test)
  if (isIdLookup(condition)) return oneOfIdsSql(condition)
  if (test.is === 'between' && hasLongBound(condition))
    return comparisonSql(wholeValueSql(target), { ...test, from: toWhole(test.from), to: toWhole(test.to) })
  return comparisonSql(valueSql(target), test)
}

type IdLookup = Extract<Condition, { is: 'in' }>

/** Returns whether a condition gives the `_id`s of entities, which the indexes lead to. */
export const isIdLookup = (condition: Condition): condition is IdLookup =>
  condition.target.at === 'column' && condition.target.column === 'e._id' && condition.is === 'in'

function oneOfIdsSql(condition: IdLookup): SqlFragment {
  const [own, identifier] = [comparisonSql('e._id', condition), comparisonSql('e.identifier', condition)]
  return fragment(`(${own.sql} or (e._id is null and ${identifier.sql}))`, ...own.params, ...identifier.params)
}

/** For lists and objects: the condition holds if one value meets it, or with `not in` if no value is in the list. */
function anyValueSql(target: FieldTarget, condition: Predicate): SqlFragment {
  const where = [fragment('x.field = ? and x.path = ?', target.field.number, target.path)]
  if (condition.is === 'between') {
    const { sql, params } = and([...where, comparisonSql('x.value', condition)])
    return fragment(`e.seq in (select x.entity from entity_index x where ${sql})`, ...params)
  }
  const wanted = comparisonSql('x.value', { ...condition, is: 'in' })
  const { sql, params } = and([...where, wanted, fragment('x.created = e.created and x.entity = e.seq')])
  // Not `exists`, which PostgreSQL turns into a join that may scan all rows of the field for each entity.
  const expected = condition.is === 'not in' ? 'null' : 'not null'
  return fragment(`(select 1 from entity_index x where ${sql} limit 1) is ${expected}`, ...params)
}

function hasPartSql({ field, path }: FieldTarget, is: 'present' | 'absent'): SqlFragment {
  const rows = 'select x.entity from entity_index x where x.field = ? and x.path = ?'
  return fragment(`e.seq ${is === 'present' ? 'in' : 'not in'} (${rows})`, field.number, path)
}

/** Returns the SQL for whether an index key, in the index or of an entity, meets a condition. */
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

const toWhole = <B extends { value: string | number; text?: string }>(bound: B | undefined) =>
  bound && { ...bound, value: bound.text ?? bound.value }

/** Returns the SQL for the value of an entity as `valueSql` does, but all of a text that the index has the beginning of. */
export function wholeValueSql(target: Target): SqlFragment {
  if (!isText(target)) return valueSql(target)
  const { field, label, form } = target
  const text = (column: string) => derivedKeySql(column, '->>')
  const inForce =
    form === undefined
      ? text('e.shown')
      : `case when e.form = ${form} then ${text('e.altered')} else ${text('e.shown')} end`
  return fragment(`coalesce(${inForce}, e.keys ->> ?)`, ...(form === undefined ? [] : [field.key]), field.key, label)
}

/** Returns the SQL for the value of an entity (`e`), in the form in which it is compared. */
export function valueSql(target: Target): SqlFragment {
  if (target.at === 'column') return fragment(target.column === 'e._id' ? idSql('e.') : target.column)
  const { field, label, form } = target
  const type = getDerivableType(field)
  if (!type) return fragment('e.keys ->> ?', label)
  // Of `true`, `->` has the text, where `->>` has the number 1.
  const derived = (column: string) => derivedKeySql(column, type === 'string' ? '->>' : '->')
  if (form === undefined) return fragment(`coalesce(e.keys ->> ?, ${derived('e.shown')})`, label, field.key)
  const inForce = `case when e.form = ${form} then ${derived('e.altered')} else ${derived('e.shown')} end`
  return fragment(`coalesce(e.keys ->> ?, ${inForce})`, label, field.key, field.key)
}

/** Returns the SQL for an index key from a document. Earlier versions wrote no pure documents, but all index keys. */
const derivedKeySql = (column: string, arrow: '->' | '->>') =>
  `case when substr(${column}, 1, 1) = '{' then ${column} ${arrow} ? end`
