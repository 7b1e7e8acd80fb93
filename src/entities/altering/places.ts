import type { Model } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import { inPortions, oneOf, part } from '../conditions'
import { type Stored, storedColumns, storedOf } from '../rows'
import { nextSlice, type Place } from '../transfer/walk'

/** An entity as it is in force, with what it is marked by. */
export type Kept = Stored & { form: number | null }

const columns = (model: Model) => `${storedColumns(model)}, form`
const keptOf = (row: unknown[]): Kept => ({ ...storedOf(row), form: row[10] as number | null })

const AT_ONCE = 200 // so that others get their turn

/** Through entities in order of time, as far as they have numbers up to that: who makes more meanwhile makes it no longer. */
export type Way = { from: Place; upto: number }

/** The entities that come next, and where those end; nowhere, when there are none. */
export async function entitiesOn(
  db: Db,
  model: Model,
  { from, upto }: Way,
  most = AT_ONCE,
): Promise<{ entities: Kept[]; end?: Place }> {
  const slice = await nextSlice(db, [part('e.blueprint = ? and e.seq <= ?', model.key, upto)], from, most)
  if (!slice) return { entities: [] }
  const end = slice.to
  const between = 'blueprint = ? and seq <= ? and (created, seq) > (?, ?) and (created, seq) <= (?, ?)'
  const sql = `select ${columns(model)} from entities where ${between} order by created asc, seq asc`
  return { entities: (await db.ask(sql, [model.key, upto, ...from, ...end])).map(keptOf), end }
}

/** Some that were written since a change is being prepared, and have to be prepared again. */
export async function marked(db: Db, model: Model, most: number): Promise<Kept[]> {
  const sql = `select ${columns(model)} from entities where blueprint = ? and form = -1 order by seq limit ?`
  return (await db.ask(sql, [model.key, most])).map(keptOf)
}

/** Those of these entities that are not any more as they were, as they are now. */
export async function changedAmong(db: Db, model: Model, entities: Kept[]): Promise<Map<number, Kept | undefined>> {
  const versions = new Map<number, number>()
  for (const some of inPortions(entities.map(({ seq }) => seq))) {
    const { sql, params } = oneOf('seq', some)
    for (const [seq, version] of await db.ask(`select seq, version from entities where ${sql}`, params))
      versions.set(seq as number, version as number)
  }
  const changed = new Map<number, Kept | undefined>()
  for (const { seq, version } of entities) {
    if (versions.get(seq) === version) continue
    const [row] = await db.ask(`select ${columns(model)} from entities where seq = ?`, [seq])
    changed.set(seq, row && keptOf(row))
  }
  return changed
}
