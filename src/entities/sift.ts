import { and, oneOf, part } from './conditions'
import { alike, inOrderOf, lacking, Members, membersOf, type Source, slicesOf } from './members'
import { isCreated, isExact, latest, type Place, type Term, termsOf } from './order'
import type { Order } from './query'
import { everything } from './scans'
import { type Asked, type Stretch, select } from './select'
import { bounds } from './sizes'

/**
 * What is found where no condition is met by few, and no order has enough of those that match near its beginning: first all
 * that match, as a set in memory, by the indexes alone; then the first of these in the order, by the index of what it is
 * sorted by. Whatever is asked, that goes through each index once.
 */
export async function sifted(asked: Asked, stretch: Stretch): Promise<unknown[][]> {
  const { db, model, reach, query } = asked
  const first = asked.first ?? query.order[0] ?? latest(true)
  const orders = [...query.order]
  if (!orders.some(({ target }) => isCreated(target))) orders.push({ ...latest(first.descending) })
  const terms = termsOf(query.order, everything(model).time, asked.first)
  const members = await membersOf(db, model, reach, query.conditions)
  return sorted({ ...asked, orders, terms }, members, 0, stretch)
}

/** Whether this can be done: all that is sorted by is in an index. */
export const isSiftable = ({ model, query }: Asked) =>
  query.search === undefined && query.order.every(({ target }) => inOrderOf(model, target))

type Sorting = Asked & { orders: Order[]; terms: Term[] }

/** The rows of some of these, which agree in what is ordered by before `level`. */
async function sorted(by: Sorting, members: Members, level: number, stretch: Stretch): Promise<unknown[][]> {
  const { limit, skip, place } = stretch
  if (limit <= 0 || members.size <= skip) return []
  if (members.size <= bounds.sorted) return rowsOf(by, members, stretch)
  const order = by.orders[level]
  if (!order) return byNumber(by, members, stretch)
  if (!place) return ofHits(by, members, level, stretch)
  const at = place[level] ?? null
  const without = () => lacking(by.db, by.model, members, order.target)
  if (at === null) return sorted(by, await without(), level + 1, stretch)
  const found = await sorted(by, await alike(by.db, by.model, members, order.target, at), level + 1, stretch)
  return [...found, ...(await ofHits(by, members, level, { limit: limit - found.length, skip, place }))]
}

/** Those that agree in everything but their numbers. */
function byNumber(by: Sorting, members: Members, { limit, skip, place }: Stretch) {
  const { descending } = by.terms.at(-1)!
  const passed = place?.at(-1) as number | undefined
  const all = [...members].filter((one) => passed === undefined || (descending ? one < passed : one > passed))
  if (descending) all.reverse()
  return rowsOf(by, all.slice(skip, skip + limit), { limit, skip: 0 })
}

/** Those that have a value, beyond that of the place; then those without. */
async function ofHits(by: Sorting, members: Members, level: number, stretch: Stretch): Promise<unknown[][]> {
  const { limit, skip } = stretch
  if (limit <= 0) return []
  const hits = await firstOf(by, members, level, stretch)
  const rows = isExact(by.orders.slice(level), by.terms.at(-1)!)
    ? await rowsOf(by, hits.slice(skip), { limit, skip: 0 })
    : await inGroups(by, members, hits, level, { limit, skip })
  if (hits.length >= skip + limit || !by.terms[level]!.nullable) return rows
  const without = await lacking(by.db, by.model, members, by.orders[level]!.target)
  const left = { limit: limit - rows.length, skip: Math.max(0, skip - hits.length) }
  return [...rows, ...(await sorted(by, without, level + 1, left))]
}

/** The first of them that an index has in the order of a level, beyond the place. */
async function firstOf({ db, model, orders, query }: Sorting, members: Members, level: number, stretch: Stretch) {
  const { limit, skip, place } = stretch
  const { target, descending } = orders[level]!
  const source = inOrderOf(model, target, query.conditions)!
  const hits: number[] = []
  for await (const entities of slicesOf(db, after(source, descending, place?.[level]), descending, bounds.stretch))
    for (const one of entities) {
      if (members.has(one)) hits.push(one)
      if (hits.length === skip + limit) return hits
    }
  return hits
}

const after = (source: Source, descending: boolean, at: Place[number] = null): Source =>
  at === null
    ? source
    : { ...source, where: and([source.where, part(`${source.by[0]} ${descending ? '<' : '>'} ?`, at)]) }

/**
 * The same where the index doesn't have the rest of the order: as many as there are of one value are sorted by that, each
 * large group by itself. Only the first and the last that are asked for can be large.
 */
async function inGroups(by: Sorting, members: Members, hits: number[], level: number, { limit, skip }: Stretch) {
  const rows: unknown[][] = []
  if (skip && hits.length > Math.max(skip, bounds.sorted)) {
    const group = await groupOf(by, members, hits[skip]!, level)
    const from = hits.findIndex(group.has)
    skip -= from
    hits = hits.slice(from)
    if (group.size > bounds.sorted) {
      rows.push(...(await sorted(by, group, level + 1, { limit, skip })))
      hits = hits.filter((one) => !group.has(one))
      limit -= rows.length
      skip = 0
    }
  }
  if (!hits.length || limit <= 0) return rows
  const group = await groupOf(by, members, hits[Math.min(hits.length, skip + limit) - 1]!, level)
  const before = hits.filter((one) => !group.has(one))
  rows.push(...(await rowsOf(by, before, { limit, skip })))
  const left = { limit: limit - Math.max(0, before.length - skip), skip: Math.max(0, skip - before.length) }
  return [...rows, ...(await sorted(by, group, level + 1, left))]
}

/** Those of them that have the same as one of them. */
async function groupOf({ db, model, terms, orders }: Sorting, members: Members, one: number, level: number) {
  const { sql, params } = terms[level]!.of
  const [row] = await db.ask(`select ${sql} from entities e where e.seq = ?`, [...params, one])
  const value = row?.[0] as string | number | null | undefined
  return value == null ? Members.of([one]) : alike(db, model, members, orders[level]!.target, value)
}

/** Asked once more for everything, for meanwhile it may have changed. */
async function rowsOf(by: Sorting, members: Iterable<number>, stretch: Stretch): Promise<unknown[][]> {
  const entities = [...members]
  if (!entities.length) return []
  // Without the blueprint, no index of entities but that of their numbers is of use.
  const scan = { ...everything(by.model), where: oneOf('e.seq', entities) }
  const { sql, params } = select(by, scan, by.terms, stretch)
  return by.db.ask(sql, params)
}
