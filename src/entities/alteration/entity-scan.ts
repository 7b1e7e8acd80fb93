import type { Model } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import { readNextSlice, type TimePosition } from '../query/entity-slices'
import { type StoredEntity, storedColumns, toStored } from '../store/rows'
import { fragment, oneOf, toChunks } from '../store/sql-fragments'

/** An entity in its current state, with the form that it is prepared for. */
export type MarkedEntity = StoredEntity & { form: number | null }

const entityColumns = (model: Model) => `${storedColumns(model)}, form`
const toMarkedEntity = (row: unknown[]): MarkedEntity => ({ ...toStored(row), form: row.at(-1) as number | null })

const ENTITIES_PER_READ = 200 // entities per statement, so that other requests get their turn

/** A scan in order of time. Entities with numbers above `upto` are skipped, so that new entities do not prolong it. */
export type ScanRange = { from: TimePosition; upto: number }

/** Returns the next slice of entities and its end position, which is missing when there are no more. */
export async function readNextEntities(
  db: Db,
  model: Model,
  { from, upto }: ScanRange,
  limit = ENTITIES_PER_READ,
): Promise<{ entities: MarkedEntity[]; end?: TimePosition }> {
  const slice = await readNextSlice(db, [fragment('e.blueprint = ? and e.seq <= ?', model.code, upto)], from, limit)
  if (!slice) return { entities: [] }
  const end = slice.to
  const between = 'blueprint = ? and seq <= ? and (created, seq) > (?, ?) and (created, seq) <= (?, ?)'
  const sql = `select ${entityColumns(model)} from entities where ${between} order by created asc, seq asc`
  return { entities: (await db.query(sql, [model.code, upto, ...from, ...end])).map(toMarkedEntity), end }
}

/** Returns entities that were written during the preparation and have to be prepared again. */
export async function readDirtyEntities(db: Db, model: Model, limit: number): Promise<MarkedEntity[]> {
  const sql = `select ${entityColumns(model)} from entities where blueprint = ? and form = -1 order by seq limit ?`
  return (await db.query(sql, [model.code, limit])).map(toMarkedEntity)
}

/** Returns those of the given entities that have changed, in their current state; undefined for a removed entity. */
export async function rereadChanged(
  db: Db,
  model: Model,
  entities: MarkedEntity[],
): Promise<Map<number, MarkedEntity | undefined>> {
  const versions = new Map<number, number>()
  for (const chunk of toChunks(entities.map(({ seq }) => seq))) {
    const { sql, params } = oneOf('seq', chunk)
    for (const [seq, version] of await db.query(`select seq, version from entities where ${sql}`, params))
      versions.set(seq as number, version as number)
  }
  const changed = new Map<number, MarkedEntity | undefined>()
  for (const { seq, version } of entities) {
    if (versions.get(seq) === version) continue
    const [row] = await db.query(`select ${entityColumns(model)} from entities where seq = ?`, [seq])
    changed.set(seq, row && toMarkedEntity(row))
  }
  return changed
}
