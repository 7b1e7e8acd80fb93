import { and, list, type Part, part, value } from './conditions'
import type { Order, Target } from './query'
import type { Scan } from './scans'

/** One thing that entities are ordered by. All terms of an order together tell any two entities apart. */
export type Term = { of: Part; descending: boolean; nullable: boolean }

/** What an entity has of each term: where it stands in the order, whoever comes or goes before or after it. */
export type Place = (string | number | null)[]

/** Entities that agree in everything come in order of time, the way that the first order goes. */
export function termsOf(order: Order[], [created, seq]: Scan['time'], first: Order | undefined = order[0]): Term[] {
  const terms = order.map(({ target, descending }): Term => {
    if (isCreated(target)) return { of: part(created), descending, nullable: false }
    return { of: value(target), descending, nullable: mayLack(target) }
  })
  const last = { descending: first?.descending ?? true, nullable: false }
  if (!order.some(({ target }) => isCreated(target))) terms.push({ of: part(created), ...last })
  return [...terms, { of: part(seq), ...last }]
}

/** Missing values last, whichever way. */
export const sorting = (terms: Term[]): Part =>
  list(
    terms.map(({ of, descending, nullable }) =>
      part(`${of.sql} ${descending ? 'desc' : 'asc'}${nullable ? ' nulls last' : ''}`, ...of.params),
    ),
  )

/** Whether an entity comes after a place. */
export function beyond([term, ...terms]: Term[], [at = null, ...place]: Place): Part {
  if (!term) return part('1 = 0')
  const { of, descending, nullable } = term
  if (at === null) return and([isNull(of), beyond(terms, place)])
  const alike = [term, ...terms].every((one) => !one.nullable && one.descending === descending)
  const sign = descending ? '<' : '>'
  if (alike) {
    const names = list([of, ...terms.map((one) => one.of)])
    const values = [at, ...place]
    return part(`(${names.sql}) ${sign} (${values.map(() => '?').join(', ')})`, ...names.params, ...values)
  }
  const after = part(`${of.sql} ${sign} ?`, ...of.params, at)
  const equal = and([part(`${of.sql} = ?`, ...of.params, at), beyond(terms, place)])
  if (nullable) return either(after, isNull(of), equal)
  // The first of these is what an index begins at.
  return and([part(`${of.sql} ${sign}= ?`, ...of.params, at), either(after, equal)])
}

const isNull = ({ sql, params }: Part) => part(`${sql} is null`, ...params)
const either = (...parts: Part[]) =>
  part(`(${parts.map(({ sql }) => sql).join(' or ')})`, ...parts.flatMap(({ params }) => params))

export const isCreated = (target: Target) => target.at === 'column' && target.column === 'e.created'

/** Whether entities may be without it. */
export const mayLack = (target: Target) =>
  target.at === 'field' || target.column === 'e."user"' || target.column === 'e.workspace'
