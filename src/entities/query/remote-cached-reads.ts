import type { Model } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import { type ChangePosition, parsePosition, positionSql, readChangesAfter } from '../changes/tracked-changes'
import { and, fragment, oneOf } from '../store/sql-fragments'
import type { CachedReads, EntityRow } from './cached-reads'
import type { CurrentEntity, EntityCache } from './entity-cache'
import { isOfBlueprintSql } from './scans'

/** So many reads skip a cache whose changes are not tracked yet. */
const UNTRACKED_READS = 20

/** A cache of the entities of a remote database. `columns` are those of the rows that `toEntity` turns into entities. */
type RemoteCache = {
  db: Db
  origin: Db
  model: Model
  cache: EntityCache
  columns: string
  toEntity(row: EntityRow): CurrentEntity
}

/**
 * Returns reads of a cache of entities of a remote database. They learn the position of the changes from the snapshot of each
 * other read, because it would take a message of its own. What the cache has by then may be newer or older.
 */
export function createRemoteReads({ db, origin, model, cache, columns, toEntity }: RemoteCache): CachedReads {
  const positionColumn = positionSql(model.key)
  return {
    positionColumn,
    async read(by, names, positions) {
      const [row, ...others] = new Set(positions ?? (await db.query(`select ${positionColumn}`)).flat())
      if (row === null) cache.skipReads(UNTRACKED_READS)
      const position = others.length ? undefined : parsePosition(row)
      if (!position || !(await moveBeyond(cache, position, origin, model))) return
      const texts = new Map<(typeof names)[number], string>()
      const missing: typeof names = []
      for (const name of names) {
        const { text, readAt } = cache.get(name) ?? {}
        if (text === undefined || !isUpTo(readAt!, position)) missing.push(name)
        else texts.set(name, text)
      }
      cache.countHits(texts.size, missing.length, true)
      if (!missing.length) return texts
      const ofBlueprint = by === 'seq' ? isOfBlueprintSql(model) : fragment('e.blueprint = ?', model.code)
      const { sql, params } = and([ofBlueprint, oneOf(`e.${by}`, missing)])
      const select = `select ${columns}, ${positionColumn} from entities e where ${sql}`
      const rows = (await db.query(select, params)) as [...EntityRow, position: unknown][]
      const readAt = rows.length ? parsePosition(rows[0]!.at(-1)) : position
      if (!readAt) return
      for (const row of rows) {
        const entity = { ...toEntity(row as unknown as EntityRow), readAt }
        texts.set(entity[by] as (typeof names)[number], entity.text)
        // A change of it may have been noticed since it was read.
        if (isUpTo(cache.position, readAt)) cache.keep(entity)
      }
      return isUpTo(readAt, position) ? texts : undefined
    },
  }
}

const isUpTo = (one: ChangePosition, other: ChangePosition) =>
  one.started === other.started && one.number <= other.number

/** The moves of caches that are under way. */
const moves = new WeakMap<EntityCache, Promise<void>>()

/** Moves a cache to a position or beyond it, once for all reads that wait for it. Returns whether it got there. */
async function moveBeyond(cache: EntityCache, position: ChangePosition, db: Db, model: Model): Promise<boolean> {
  if (isUpTo(position, cache.position)) return true
  const move = moves.get(cache) ?? moveToLatest(cache, position, db, model).finally(() => moves.delete(cache))
  moves.set(cache, move)
  await move
  return isUpTo(position, cache.position)
}

async function moveToLatest(cache: EntityCache, position: ChangePosition, db: Db, { key }: Model) {
  if (!cache.isNear(position)) return cache.moveTo(position, () => undefined)
  const latest = await readChangesAfter(db, key, cache.position)
  cache.moveTo(latest.position, () => latest.entities)
}
