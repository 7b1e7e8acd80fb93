import { BLUEPRINT_CODE } from '../../blueprints/number-sequence'
import type { Db } from '../../storage/port'
import { beginCachedReads } from '../query/cached-reads'
import { scopeSql } from '../query/sql-conditions'
import { type EntityFormat, shownColumnSql } from '../store/serializer'
import { and, fragment, oneOf, type SqlFragment, toChunks } from '../store/sql-fragments'
import type { ReadableBlueprint, ReverseRelation } from './populate-plan'

/** The stored JSON of entities, by identifier or number. `complete` is false when the size limit cut it off. */
export type RelatedTexts<Key> = { texts: Map<Key, string>; complete: boolean }

const MAX_REVERSE_ENTITIES = 100 // entities of a reverse relation

/**
 * Reads entities as they are shown to those who may read all of them, which are in the cache of entities if some are. Returns
 * undefined where they have to be read in another way.
 */
export async function readCachedRelated(
  db: Db,
  { model, rowScope }: ReadableBlueprint,
  format: EntityFormat,
  identifiers: string[],
  allowed: number,
): Promise<Map<string, string> | undefined> {
  if (!rowScope.all || identifiers.length > MAX_CACHED_ENTITIES) return
  const texts = await beginCachedReads(db, model, format)?.read('identifier', identifiers)
  let characters = 0
  for (const text of texts?.values() ?? []) characters += text.length
  return characters > allowed ? undefined : texts
}

const MAX_CACHED_ENTITIES = 100 // that are read at once

/** Reads entities in chunks, up to `allowed` bytes, but at least one entity. */
export async function readRelated<Key extends string | number>(
  db: Db,
  { model, rowScope }: ReadableBlueprint,
  by: 'e.identifier' | 'e.seq',
  names: Key[],
  allowed: number,
  conditions: SqlFragment[] = [],
): Promise<RelatedTexts<Key>> {
  const texts = new Map<Key, string>()
  let remaining = allowed
  for (const chunk of toChunks(names)) {
    if (remaining <= 0) return { texts, complete: false }
    const own = fragment('e.blueprint = ?', model.code)
    const { sql, params } = and([own, oneOf(by, chunk), ...scopeSql(rowScope), ...conditions])
    const columns = [by, shownColumnSql(model)]
    const rows =
      (await readShares(db, columns, { sql, params }, Math.floor(remaining / chunk.length))) ??
      (await readFitting(db, columns, { sql, params }, remaining))
    for (const [key, shown] of rows as [Key, string][]) {
      texts.set(key, shown)
      remaining -= shown.length
    }
    if (rows.length < Number(rows[0]?.[2] ?? 0)) return { texts, complete: false }
    if (names.length > chunk.length) await db.yieldToOthers()
  }
  return { texts, complete: true }
}

/** Reads entities unless one has more than `share` bytes. */
async function readShares(db: Db, [by, shown]: string[], { sql, params }: SqlFragment, share: number) {
  const select = `select ${by}, case when octet_length(e.shown) <= ? then ${shown} end from entities e where ${sql}`
  const rows = await db.query(select, [share, ...params])
  return rows.every((row) => row[1] !== null) ? rows : undefined
}

/** Reads the newest entities that have `allowed` bytes together, and how many there are in all. */
async function readFitting(db: Db, columns: string[], { sql, params }: SqlFragment, allowed: number) {
  const sized = `select e.seq, octet_length(e.shown) as size, sum(octet_length(e.shown)) over (order by e.seq desc) as upto,
    count(*) over () as entities from entities e where ${sql}`
  const select = `select ${columns.join(', ')}, t.entities from (${sized}) t join entities e on e.seq = t.seq where t.upto - t.size < ?`
  return db.query(select, [...params, allowed])
}

/** Returns the numbers of the entities that refer to each identifier, newest first, which is the order of the index. */
export async function findReferencing(
  db: Db,
  target: string,
  { from, fields, scope }: ReverseRelation,
  identifiers: string[],
): Promise<Map<string, number[]>> {
  const pointing = new Map<string, number[]>()
  if (!from) return pointing
  const visibility = [...scopeSql(from.rowScope), ...scopeSql(scope)]
  const lists = fields.map((field) => {
    const where = and([fragment("i.field = ? and i.path = '' and i.value = t.identifier", field), ...visibility])
    const joined = visibility.length ? 'entity_index i join entities e on e.seq = i.entity' : 'entity_index i'
    const newest = `select i.created || ':' || i.entity as place from ${joined} where ${where.sql}
      order by i.created desc, i.entity desc limit ${MAX_REVERSE_ENTITIES}`
    return fragment(`(select group_concat(r.place, ',') from (${newest}) r)`, ...where.params)
  })
  for (const chunk of toChunks(identifiers)) {
    const { sql, params } = oneOf('t.identifier', chunk)
    const rows = await db.query(
      `select t.identifier, ${lists.map((list) => list.sql).join(', ')} from entities t where t.blueprint = ${BLUEPRINT_CODE} and ${sql}`,
      [...lists.flatMap((list) => list.params), target, ...params],
    )
    for (const [identifier, ...places] of rows as string[][]) pointing.set(identifier!, newestIds(places))
  }
  return pointing
}

/** Returns the distinct numbers from lists of `created:number`, newest first. */
function newestIds(lists: (string | null)[]): number[] {
  const places = [...new Set(lists.filter((list) => list !== null).flatMap((list) => list.split(',')))]
  return places
    .map((place) => place.split(':').map(Number) as [number, number])
    .sort(([time, number], [otherTime, other]) => otherTime - time || other - number)
    .slice(0, MAX_REVERSE_ENTITIES)
    .map(([, number]) => number)
}
