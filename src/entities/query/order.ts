import { and, commaList, fragment, type SqlFragment } from '../store/sql-fragments'
import type { Scan } from './scans'
import { wholeValueSql } from './sql-conditions'
import type { Order, Target } from './target'

/** One term of an order. All terms of an order together are unique to an entity. */
export type OrderTerm = { of: SqlFragment; descending: boolean; nullable: boolean }

/** An entity's values of all terms: its position in the order, whichever entities are added or removed around it. */
export type SortPosition = (string | number | null)[]

/** Returns the terms of an order. Ties are ordered by time, in the direction of the first order. */
export function toOrderTerms(
  order: Order[],
  [created, seq]: Scan['time'],
  first: Order | undefined = order[0],
): OrderTerm[] {
  const terms = order.map(({ target, descending }): OrderTerm => {
    if (isCreated(target)) return { of: fragment(created), descending, nullable: false }
    return { of: wholeValueSql(target), descending, nullable: isNullable(target) }
  })
  const last = { descending: first?.descending ?? true, nullable: false }
  if (!order.some(({ target }) => isCreated(target))) terms.push({ of: fragment(created), ...last })
  return [...terms, { of: fragment(seq), ...last }]
}

/** Returns the SQL of an order. Missing values come last in both directions. */
export const orderBySql = (terms: OrderTerm[]): SqlFragment =>
  commaList(
    terms.map(({ of, descending, nullable }) =>
      fragment(`${of.sql} ${descending ? 'desc' : 'asc'}${nullable ? ' nulls last' : ''}`, ...of.params),
    ),
  )

/** Returns the SQL for whether an entity comes after a position. */
export function afterPositionSql([term, ...terms]: OrderTerm[], [at = null, ...position]: SortPosition): SqlFragment {
  if (!term) return fragment('1 = 0')
  const { of, descending, nullable } = term
  if (at === null) return and([isNullSql(of), afterPositionSql(terms, position)])
  const isUniform = [term, ...terms].every((one) => !one.nullable && one.descending === descending)
  const sign = descending ? '<' : '>'
  if (isUniform) {
    const names = commaList([of, ...terms.map((one) => one.of)])
    const values = [at, ...position]
    return fragment(`(${names.sql}) ${sign} (${values.map(() => '?').join(', ')})`, ...names.params, ...values)
  }
  const after = fragment(`${of.sql} ${sign} ?`, ...of.params, at)
  const equal = and([fragment(`${of.sql} = ?`, ...of.params, at), afterPositionSql(terms, position)])
  if (nullable) return orSql(after, isNullSql(of), equal)
  // An index scan starts at the first of these conditions.
  return and([fragment(`${of.sql} ${sign}= ?`, ...of.params, at), orSql(after, equal)])
}

const isNullSql = ({ sql, params }: SqlFragment) => fragment(`${sql} is null`, ...params)
const orSql = (...parts: SqlFragment[]) =>
  fragment(`(${parts.map(({ sql }) => sql).join(' or ')})`, ...parts.flatMap(({ params }) => params))

export const isCreated = (target: Target) => target.at === 'column' && target.column === 'e.created'

/** Returns whether entities may lack a value of the target. */
export const isNullable = (target: Target) =>
  target.at === 'field' || target.column === 'e."user"' || target.column === 'e.workspace'

/** Returns whether an index by the first of these orders, and then by time, has the whole order. */
export const matchesIndexOrder = ([first, ...others]: Order[], last: { descending: boolean }) =>
  first!.descending === last.descending &&
  others.every((one) => isCreated(one.target) && one.descending === last.descending)

export const byCreated = (descending: boolean): Order => ({ target: { at: 'column', column: 'e.created' }, descending })
