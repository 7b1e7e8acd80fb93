import { and, commaList, fragment, type SqlFragment } from '../store/sql-fragments'
import type { Scan } from './scans'
import { valueSql } from './sql-conditions'
import type { Order, Target } from './target'

/** One thing that entities are ordered by. All terms of an order together tell any two entities apart. */
export type OrderTerm = { of: SqlFragment; descending: boolean; nullable: boolean }

/** What an entity has of each term: where it stands in the order, whoever comes or goes before or after it. */
export type SortPosition = (string | number | null)[]

/** Entities that agree in everything come in order of time, the way that the first order goes. */
export function toOrderTerms(
  order: Order[],
  [created, seq]: Scan['time'],
  first: Order | undefined = order[0],
): OrderTerm[] {
  const terms = order.map(({ target, descending }): OrderTerm => {
    if (isCreated(target)) return { of: fragment(created), descending, nullable: false }
    return { of: valueSql(target), descending, nullable: isNullable(target) }
  })
  const last = { descending: first?.descending ?? true, nullable: false }
  if (!order.some(({ target }) => isCreated(target))) terms.push({ of: fragment(created), ...last })
  return [...terms, { of: fragment(seq), ...last }]
}

/** Missing values last, whichever way. */
export const orderBySql = (terms: OrderTerm[]): SqlFragment =>
  commaList(
    terms.map(({ of, descending, nullable }) =>
      fragment(`${of.sql} ${descending ? 'desc' : 'asc'}${nullable ? ' nulls last' : ''}`, ...of.params),
    ),
  )

/** Whether an entity comes after a place. */
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
  // The first of these is what an index begins at.
  return and([fragment(`${of.sql} ${sign}= ?`, ...of.params, at), orSql(after, equal)])
}

const isNullSql = ({ sql, params }: SqlFragment) => fragment(`${sql} is null`, ...params)
const orSql = (...parts: SqlFragment[]) =>
  fragment(`(${parts.map(({ sql }) => sql).join(' or ')})`, ...parts.flatMap(({ params }) => params))

export const isCreated = (target: Target) => target.at === 'column' && target.column === 'e.created'

/** Whether entities may be without it. */
export const isNullable = (target: Target) =>
  target.at === 'field' || target.column === 'e."user"' || target.column === 'e.workspace'

/** Whether an index that is ordered by the first of these, and then by time, has them all in their order. */
export const matchesIndexOrder = ([first, ...others]: Order[], last: { descending: boolean }) =>
  first!.descending === last.descending &&
  others.every((one) => isCreated(one.target) && one.descending === last.descending)

export const byCreated = (descending: boolean): Order => ({ target: { at: 'column', column: 'e.created' }, descending })
