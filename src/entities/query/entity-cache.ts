import type { Model } from '../../blueprints/model'
import type { Awaitable } from '../../core/awaitable'
import { etagOf } from '../../core/etag'
import { weakCached } from '../../core/weak-cache'
import type { Db } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { type ChangePosition, readChangedAtOnce, readPositionAtOnce, trackChanges } from '../changes/tracked-changes'
import { type EntityFormat, parseOwners, shownColumnSql } from '../store/serializer'
import { and, fragment, oneOf, type SqlFragment } from '../store/sql-fragments'
import { createRemoteReads } from './remote-cached-reads'
import { isOfBlueprintSql } from './scans'

type Name = number | string
/**
 * An entity in a format, with its owners and the ETag of a response. Without a text, it has changed since. One of a remote
 * database has the position at which it was read.
 */
export type CachedEntity = {
  seq: number
  identifier: string
  user: string | null
  workspace: string | null
  etag: string
  text?: string
  readAt?: ChangePosition
}
/** An entity that has not changed since it was read. */
export type CurrentEntity = CachedEntity & { text: string }

const MAX_RECENT_CHARACTERS = 1 << 22 // of a cache; about as many are kept of those that were read before
const MAX_CACHED_CHARACTERS = 1 << 24 // of all caches of a process
const MAX_CHARACTERS = 1 << 16 // of an entity that is kept
const ENTITY_CHARACTERS = 200 // what an entity takes beside its text
/** With more changes since the last read, everything is read again. */
const MAX_CHANGES = 1_000
/** When fewer of so many entities are found in a full cache, so many reads skip it: they take one statement less. */
const [COUNTED_ENTITIES, MIN_FOUND, SKIPPED_READS] = [500, 150, 500]
/** Of a remote database, these skip any cache, for so many reads as were counted, because each would take a message more. */
const [MIN_FOUND_REMOTE, SKIPS_PER_READ_REMOTE] = [350, 20]
/** So many reads of single entities make their changes worth tracking. */
const MIN_UNTRACKED_READS = 100

/** A cache that was not used for so long is cleared (ms), so that an idle server gives its memory back. */
const IDLE_MS = 60_000

/** The texts of the entities of a model that were read last, as they were at a position of its changes. */
export class EntityCache {
  /** Whether it was used since the last check. */
  isInUse = false
  position: ChangePosition = { started: 0, number: 0 }
  #recent = new Map<Name, CachedEntity>()
  /** What was read before, of which everything that is not read again is removed when `#recent` is full. */
  #earlier = new Map<Name, CachedEntity>()
  #characters = 0
  #earlierCharacters = 0
  #found = 0
  #missing = 0
  #countedReads = 0
  #skippedReads = 0

  /** Has the next reads skip the cache. */
  skipReads(count: number) {
    this.#skippedReads = count
  }

  /** Tells whether a read skips the cache, and counts it. */
  skipRead() {
    if (!this.#skippedReads) return false
    this.#skippedReads--
    return true
  }

  /** Counts how many entities were found here, and how many were not. When few are, the next reads skip the cache. */
  countHits(found: number, missing: number, isRemote = false) {
    if (!isRemote && !this.#earlier.size) return
    this.#found += found
    this.#missing += missing
    this.#countedReads++
    if (this.#found + this.#missing < COUNTED_ENTITIES) return
    if (this.#found < (isRemote ? MIN_FOUND_REMOTE : MIN_FOUND))
      this.skipReads(isRemote ? SKIPS_PER_READ_REMOTE * this.#countedReads : SKIPPED_READS)
    this.#found = this.#missing = this.#countedReads = 0
  }

  isAt = ({ started, number }: ChangePosition) => this.position.started === started && this.position.number === number

  /** Returns whether so few changes came since the last read that they are read. */
  isNear = ({ started, number }: ChangePosition) =>
    started === this.position.started && number - this.position.number <= MAX_CHANGES

  /** Removes the texts of the entities that have changed up to a position. */
  moveTo(position: ChangePosition, readChanged: (after: number) => number[] | undefined) {
    if (this.isAt(position)) return
    const changed = this.isNear(position) ? readChanged(this.position.number) : undefined
    if (!changed) this.clear()
    for (const seq of changed ?? []) {
      const entity = this.#recent.get(seq) ?? this.#earlier.get(seq)
      if (entity) entity.text = undefined
    }
    this.position = position
  }

  get(name: Name): CachedEntity | undefined {
    const entity = this.#recent.get(name)
    if (entity) return entity
    const earlier = this.#earlier.get(name)
    if (earlier?.text !== undefined) this.keep(earlier)
    return earlier
  }

  /** Keeps an entity by its number, its identifier, and the name that it was asked for by. */
  keep(entity: CachedEntity, name: Name = entity.seq) {
    const characters = ENTITY_CHARACTERS + (entity.text?.length ?? 0)
    // A cache that was cleared meanwhile would keep it, and its room, forever.
    if (characters > MAX_CHARACTERS || !latestCaches.has(this)) return
    // All names together, so that a change finds every entity by its number.
    this.#recent.set(entity.seq, entity).set(entity.identifier, entity).set(name, entity)
    this.#characters += characters
    cachedCharacters += characters
    if (this.#characters >= MAX_RECENT_CHARACTERS) this.#removeEarlier()
    removeOldCaches()
  }

  /** What was read last becomes what was read before. */
  #removeEarlier() {
    cachedCharacters -= this.#earlierCharacters
    this.#earlier = this.#recent
    this.#earlierCharacters = this.#characters
    this.#recent = new Map()
    this.#characters = 0
  }

  clear() {
    this.#removeEarlier()
    this.#removeEarlier()
  }
}

/** The caches of a model, which belongs to a tenant and is dropped with its open database. */
const cachesOf = weakCached((_: Model) => new Map<string, EntityCache>())
/** The caches that hold texts, the one that was used last at the end. */
const latestCaches = new Set<EntityCache>()
let cachedCharacters = 0
let idleTimer: ReturnType<typeof setInterval> | undefined

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

/** Has the entities of a blueprint cached from soon on. */
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
 * Returns an entity that is read alone, by identifier or else by `_id`, from the cache if it is there. Returns undefined where
 * it has to be read in another way.
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

/** Returns the cache of a model in a format, unless a read cannot use it. */
function findCache(db: Db, model: Model, { name }: EntityFormat): EntityCache | undefined {
  // Reader threads get the reads of large pages, and an entity has two forms during an alteration.
  if (db.isUncached || !Bun.isMainThread || model.alteration) return
  const cache = cachesOf(model).get(name) ?? new EntityCache()
  return cache.skipRead() ? undefined : cache
}

function noteUse(model: Model, { name }: EntityFormat, cache: EntityCache) {
  cachesOf(model).set(name, cache)
  latestCaches.delete(cache)
  latestCaches.add(cache)
  cache.isInUse = true
  idleTimer ??= setInterval(clearIdleCaches, IDLE_MS).unref()
}

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

/** Puts a text of parts together once, and not for each answer. */
function flatten(text: string) {
  text.charCodeAt(0)
  return text
}

/** Clears the caches that were unused for longest, as long as all of them hold too much. */
function removeOldCaches() {
  for (const cache of latestCaches) {
    if (cachedCharacters <= MAX_CACHED_CHARACTERS || latestCaches.size === 1) return
    latestCaches.delete(cache)
    cache.clear()
  }
}

/** Clears the caches that were not used since the last call. */
export function clearIdleCaches() {
  for (const cache of latestCaches) {
    if (!cache.isInUse) {
      latestCaches.delete(cache)
      cache.clear()
    }
    cache.isInUse = false
  }
  if (latestCaches.size) return
  clearInterval(idleTimer)
  idleTimer = undefined
}
