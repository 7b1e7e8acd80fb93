import type { Db } from '../storage/port'
import { and, inPortions, oneOf, type Part, part, within } from './conditions'
import type { OuterSet, Readable } from './related'
import { shownIn } from './wire'

/** What is kept to be shown of entities, by identifier or number; not complete when all would have been too much. */
export type Found<Key> = { texts: Map<Key, string>; complete: boolean }

const EACH = 100 // entities of a set

/** Reads entities by one statement, and for thousands by a few; no more bytes than allowed, but at least one. */
export async function read<Key extends string | number>(
  db: Db,
  { model, reach }: Readable,
  by: 'e.identifier' | 'e.seq',
  names: Key[],
  allowed: number,
  conditions: Part[] = [],
): Promise<Found<Key>> {
  const texts = new Map<Key, string>()
  let left = allowed
  for (const some of inPortions(names)) {
    if (left <= 0) return { texts, complete: false }
    const own = part('e.blueprint = ?', model.key)
    const { sql, params } = and([own, oneOf(by, some), ...within(reach), ...conditions])
    const sized = `select e.seq, octet_length(e.shown) as size, sum(octet_length(e.shown)) over (order by e.seq desc) as upto,
      count(*) over () as entities from entities e where ${sql}`
    const rows = (await db.ask(
      `select ${by}, ${shownIn(model)}, t.entities from (${sized}) t join entities e on e.seq = t.seq where t.upto - t.size < ?`,
      [...params, left],
    )) as [Key, string, number][]
    for (const [key, shown] of rows) {
      texts.set(key, shown)
      left -= shown.length
    }
    if (rows.length < Number(rows[0]?.[2] ?? 0)) return { texts, complete: false }
    if (names.length > some.length) await db.pause()
  }
  return { texts, complete: true }
}

/** Which entities of a set point at these, by identifier: the newest first. The index has them in this order. */
export async function pointingTo(
  db: Db,
  target: string,
  { from, fields, scope }: OuterSet,
  identifiers: string[],
): Promise<Map<string, number[]>> {
  const pointing = new Map<string, number[]>()
  if (!from) return pointing
  const seen = [...within(from.reach), ...within(scope)]
  const lists = fields.map((field) => {
    const where = and([part("i.field = ? and i.path = '' and i.value = t.identifier", field), ...seen])
    const joined = seen.length ? 'entity_index i join entities e on e.seq = i.entity' : 'entity_index i'
    const newest = `select i.created || ':' || i.entity as place from ${joined} where ${where.sql}
      order by i.created desc, i.entity desc limit ${EACH}`
    return part(`(select group_concat(r.place, ',') from (${newest}) r)`, ...where.params)
  })
  for (const some of inPortions(identifiers)) {
    const { sql, params } = oneOf('t.identifier', some)
    const rows = await db.ask(
      `select t.identifier, ${lists.map((list) => list.sql).join(', ')} from entities t where t.blueprint = ? and ${sql}`,
      [...lists.flatMap((list) => list.params), target, ...params],
    )
    for (const [identifier, ...places] of rows as string[][]) pointing.set(identifier!, newest(places))
  }
  return pointing
}

/** The numbers of lists of `created:number`, each once. */
function newest(lists: (string | null)[]): number[] {
  const places = [...new Set(lists.filter((list) => list !== null).flatMap((list) => list.split(',')))]
  return places
    .map((place) => place.split(':').map(Number) as [number, number])
    .sort(([time, number], [otherTime, other]) => otherTime - time || other - number)
    .slice(0, EACH)
    .map(([, number]) => number)
}
