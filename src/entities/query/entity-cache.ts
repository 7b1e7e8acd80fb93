import type { Model } from '../../blueprints/model'
import { weakCached } from '../../core/weak-cache'
import type { Db } from '../../storage/port'
import type { ChangePosition } from '../changes/tracked-changes'
import type { EntityFormat } from '../store/serializer'

/** The number, the identifier or the `_id` of an entity. */
export type Name = number | string
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
/** After 500 lookups in a full cache with fewer than 150 hits, 500 reads skip it and save a statement each. */
const [COUNTED_ENTITIES, MIN_FOUND, SKIPPED_READS] = [500, 150, 500]
/** Of a remote database, these skip any cache, for so many reads as were counted, because each would take a message more. */
const [MIN_FOUND_REMOTE, SKIPS_PER_READ_REMOTE] = [350, 20]
/** A cache is cleared when it was unused for so long (ms), so that an idle server releases its memory. */
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

/** Returns the cache of a model in a format, unless a read cannot use it. */
export function findCache(db: Db, model: Model, { name }: EntityFormat): EntityCache | undefined {
  // Reader threads get the reads of large pages, and an entity has two forms during an alteration.
  if (db.isUncached || !Bun.isMainThread || model.alteration) return
  const cache = cachesOf(model).get(name) ?? new EntityCache()
  return cache.skipRead() ? undefined : cache
}

/** Marks a cache as used. Others are cleared before it. */
export function noteUse(model: Model, { name }: EntityFormat, cache: EntityCache) {
  cachesOf(model).set(name, cache)
  latestCaches.delete(cache)
  latestCaches.add(cache)
  cache.isInUse = true
  idleTimer ??= setInterval(clearIdleCaches, IDLE_MS).unref()
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
