import type { Model } from '../../blueprints/model'
import type { Awaitable } from '../../core/awaitable'
import { etagOf } from '../../core/etag'
import { weakCached } from '../../core/weak-cache'
import type { Db } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { type ChangePosition, readChangedAtOnce, readPositionAtOnce, trackChanges } from '../changes/tracked-changes'
import { type EntityFormat, parseOwners, shownColumnSql } from '../store/serializer'
import { and, fragment, oneOf, type SqlFragment } from '../store/sql-fragments'
import { type CachedEntity, type CurrentEntity, type EntityCache, findCache, type Name, noteUse } from './entity-cache'
import { createRemoteReads } from './remote-cached-reads'
import { isOfBlueprintSql } from './scans'

/** Changes of a blueprint are tracked after so many reads of single entities. */
const MIN_UNTRACKED_READS = 100

/** Reads the texts of entities, by number or identifier, those in the cache and others. */
export type CachedReads = {
  /** What a list selects beside the numbers of its entities, and gives to `read`, where the database is remote. */
  positionColumn?: string
  /** Returns the texts, or undefined when an entity of the blueprint has changed since the reads began. */
  read<Key extends Name>(
    by: 'seq' | 'identifier',
    names: Key[],
    positions?: unknown[],
  ): Awaitable<Map<Key, string> | undefined>
}

/** Starts to track the changes of a blueprint, which caching its entities requires. */
export const requestCache = (ctx: Tenant, model: Model) => trackChanges(ctx, model)

/** Begins reads of entities in a format. Returns undefined where their changes are not tracked. */
export function beginCachedReads(db: Db, model: Model, format: EntityFormat): CachedReads | undefined {
  const { origin } = db
  if (!origin) return
  if (!origin.queryAtOnce) {
    const cache = findCache(origin, model, format)
    if (!cache) return
    noteUse(model, format, cache)
    const toEntity = (row: EntityRow) => toCachedEntity(model, format, row)
    return createRemoteReads({ db, origin, model, cache, columns: entityColumns(model), toEntity })
  }
  const opened = openCache(origin, model, format)
  if (!opened) return
  const { cache, position } = opened
  return {
    read(by, names) {
      const current = readPositionAtOnce(origin, model.key)
      if (current?.started !== position.started || current.number !== position.number) return
      moveCache(origin, model, cache, current)
      return readTexts(cache, by, names, (missing) => {
        const ofBlueprint = by === 'seq' ? isOfBlueprintSql(model) : fragment('e.blueprint = ?', model.code)
        return readEntities(origin, model, format, and([ofBlueprint, oneOf(`e.${by}`, missing)]))
      })
    },
  }
}

/**
 * Reads one entity through the cache, by identifier or else by `_id`. Returns undefined if it does not exist, or if the read
 * cannot use the cache.
 */
export function readCachedEntity(
  ctx: Tenant,
  model: Model,
  format: EntityFormat,
  name: string,
): CurrentEntity | undefined {
  const db = ctx.db.origin ?? ctx.db
  if (!db.queryAtOnce) return
  const opened = openCache(db, model, format)
  if (!opened) {
    if (++untrackedReadsOf(model).count % MIN_UNTRACKED_READS === 0) requestCache(ctx, model)
    return
  }
  const { cache } = opened
  const known = cache.get(name)
  const isKnown = isUnchanged(known)
  cache.countHits(isKnown ? 1 : 0, isKnown ? 0 : 1)
  if (isKnown) return known
  const read = (column: string) =>
    readEntities(db, model, format, fragment(`e.blueprint = ? and e.${column} = ?`, model.code, name))
  const entity = read('identifier')?.[0] ?? read('_id')?.[0]
  // No identifier is the `_id` of another entity.
  if (entity) cache.keep(entity, name)
  return entity
}

const isUnchanged = (entity: CachedEntity | undefined): entity is CurrentEntity => entity?.text !== undefined
const untrackedReadsOf = weakCached((_: Model) => ({ count: 0 }))

/** Returns the cache at the current position of its changes, where the engine is in this process. */
function openCache(db: Db, model: Model, format: EntityFormat) {
  const cache = db.queryAtOnce && findCache(db, model, format)
  const position = cache && readPositionAtOnce(db, model.key)
  if (!position) return
  noteUse(model, format, cache)
  moveCache(db, model, cache, position)
  return { cache, position }
}

const moveCache = (db: Db, { key }: Model, cache: EntityCache, position: ChangePosition) =>
  cache.moveTo(position, (after) => readChangedAtOnce(db, key, after))

export type EntityRow = [seq: number, identifier: string, version: number, shown: string]
const entityColumns = (model: Model) => `e.seq, e.identifier, e.version, ${shownColumnSql(model)}`

function toCachedEntity(model: Model, { write }: EntityFormat, [seq, identifier, version, shown]: EntityRow) {
  const { user, workspace, updated } = parseOwners(shown)
  return { seq, identifier, user, workspace, etag: etagOf(version, updated, model.form), text: flatten(write(shown)) }
}

/** Reads entities without a promise; undefined where the engine cannot. */
function readEntities(db: Db, model: Model, format: EntityFormat, { sql, params }: SqlFragment) {
  const rows = db.queryAtOnce?.(`select ${entityColumns(model)} from entities e where ${sql}`, params)
  return rows?.map((row) => toCachedEntity(model, format, row as EntityRow))
}

function readTexts<Key extends Name>(
  cache: EntityCache,
  by: 'seq' | 'identifier',
  names: Key[],
  readMissing: (names: Key[]) => CurrentEntity[] | undefined,
): Map<Key, string> | undefined {
  const texts = new Map<Key, string>()
  const missing: Key[] = []
  for (const name of names) {
    const text = cache.get(name)?.text
    if (text === undefined) missing.push(name)
    else texts.set(name, text)
  }
  cache.countHits(texts.size, missing.length)
  const entities = missing.length ? readMissing(missing) : []
  for (const entity of entities ?? []) {
    texts.set(entity[by] as Key, entity.text)
    cache.keep(entity)
  }
  return entities && texts
}

/** Flattens a concatenated text once, and not for each response. */
function flatten(text: string) {
  text.charCodeAt(0)
  return text
}
