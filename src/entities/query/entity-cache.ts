import type { Model } from '../../blueprints/model'
import { weakCached } from '../../core/weak-cache'
import type { Db } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { type ChangePosition, readChangedAtOnce, readPositionAtOnce, trackChanges } from '../changes/tracked-changes'
import { type EntityFormat, shownColumnSql } from '../store/serializer'
import { and, fragment, oneOf } from '../store/sql-fragments'
import { isOfBlueprintSql } from './scans'

type Name = number | string
/** Without a text, the entity has changed since. */
type CachedEntity = { seq: number; identifier: string; text?: string }

const MAX_RECENT_CHARACTERS = 1 << 20 // of a cache; about as many are kept of those that were read before
const MAX_CHARACTERS = 1 << 16 // of an entity that is kept
const ENTITY_CHARACTERS = 200 // what an entity takes beside its text
const MAX_CACHES = 8 // of a process that hold texts
/** With more changes since the last read, everything is read again. */
const MAX_CHANGES = 1_000
/** When fewer of so many entities are found in a full cache, so many reads skip it: they take one statement less. */
const [COUNTED_ENTITIES, MIN_FOUND, SKIPPED_READS] = [500, 150, 500]

/** The texts of the entities of a model that were read last, as they were at a position of its changes. */
class EntityCache {
  #position: ChangePosition = { started: 0, number: 0 }
  #recent = new Map<Name, CachedEntity>()
  /** What was read before, of which everything that is not read again is removed when `#recent` is full. */
  #earlier = new Map<Name, CachedEntity>()
  #characters = 0
  #found = 0
  #missing = 0
  #skippedReads = 0

  /** Tells whether a read skips the cache, and counts it. */
  skipRead() {
    if (!this.#skippedReads) return false
    this.#skippedReads--
    return true
  }

  /** Counts how many entities were found here, and how many were not. When few are, the next reads skip the cache. */
  countHits(found: number, missing: number) {
    if (!this.#earlier.size) return
    this.#found += found
    this.#missing += missing
    if (this.#found + this.#missing < COUNTED_ENTITIES) return
    if (this.#found < MIN_FOUND) this.#skippedReads = SKIPPED_READS
    this.#found = this.#missing = 0
  }

  isAt = ({ started, number }: ChangePosition) => this.#position.started === started && this.#position.number === number

  /** Removes the texts of the entities that have changed up to a position. */
  moveTo(position: ChangePosition, readChanged: (after: number) => number[] | undefined) {
    if (this.isAt(position)) return
    const isNear = position.started === this.#position.started && position.number - this.#position.number <= MAX_CHANGES
    const changed = isNear ? readChanged(this.#position.number) : undefined
    if (!changed) this.clear()
    for (const seq of changed ?? []) {
      const entity = this.#recent.get(seq) ?? this.#earlier.get(seq)
      if (entity) entity.text = undefined
    }
    this.#position = position
  }

  get(name: Name): CachedEntity | undefined {
    const entity = this.#recent.get(name)
    if (entity) return entity
    const earlier = this.#earlier.get(name)
    if (earlier?.text !== undefined) this.keep(earlier)
    return earlier
  }

  keep(entity: CachedEntity) {
    const characters = ENTITY_CHARACTERS + (entity.text?.length ?? 0)
    if (characters > MAX_CHARACTERS) return
    // Both names together, so that a change finds every entity by its number.
    this.#recent.set(entity.seq, entity).set(entity.identifier, entity)
    this.#characters += characters
    if (this.#characters < MAX_RECENT_CHARACTERS) return
    this.#earlier = this.#recent
    this.#recent = new Map()
    this.#characters = 0
  }

  clear() {
    this.#recent = new Map()
    this.#earlier = new Map()
    this.#characters = 0
  }
}

/** The caches of a model, which belongs to a tenant and is dropped with its open database. */
const cachesOf = weakCached((_: Model) => new Map<string, EntityCache>())
/** The caches that were used last, the latest one last. */
const latestCaches = new Set<EntityCache>()

/** Reads the texts of entities, by number or identifier, those in the cache and others. */
export type CachedReads = {
  /** Returns the texts, or undefined when an entity of the blueprint has changed since the reads began. */
  read<Key extends Name>(by: 'seq' | 'identifier', names: Key[]): Map<Key, string> | undefined
}

/** Has the entities of a blueprint cached from soon on, where the engine is in this process. */
export function requestCache(ctx: Tenant, model: Model) {
  if (!ctx.place?.cluster) trackChanges(ctx, model)
}

/** Begins reads of entities in a format. Returns undefined where their changes are not tracked. */
export function beginCachedReads(db: Db, model: Model, { name, write }: EntityFormat): CachedReads | undefined {
  const { origin } = db
  // Reader threads get the reads of large pages, and an entity has two forms during an alteration.
  if (!origin?.queryAtOnce || !Bun.isMainThread || model.alteration) return
  const caches = cachesOf(model)
  const cache = caches.get(name) ?? new EntityCache()
  if (cache.skipRead()) return
  const position = readPositionAtOnce(origin, model.key)
  if (!position) return
  caches.set(name, cache)
  noteUse(cache)
  const advance = (to: ChangePosition) => cache.moveTo(to, (after) => readChangedAtOnce(origin, model.key, after))
  advance(position)
  return {
    read(by, names) {
      const current = readPositionAtOnce(origin, model.key)
      if (current?.started !== position.started || current.number !== position.number) return
      advance(current)
      return readTexts(cache, by, names, (missing) => {
        const where = and([
          by === 'seq' ? isOfBlueprintSql(model) : fragment('e.blueprint = ?', model.code),
          oneOf(`e.${by}`, missing),
        ])
        const select = `select e.seq, e.identifier, ${shownColumnSql(model)} from entities e where ${where.sql}`
        const rows = origin.queryAtOnce?.(select, where.params) as [number, string, string][] | undefined
        return rows?.map(([seq, identifier, shown]) => ({ seq, identifier, text: flatten(write(shown)) }))
      })
    },
  }
}

function readTexts<Key extends Name>(
  cache: EntityCache,
  by: 'seq' | 'identifier',
  names: Key[],
  readMissing: (names: Key[]) => Required<CachedEntity>[] | undefined,
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

function noteUse(cache: EntityCache) {
  latestCaches.delete(cache)
  latestCaches.add(cache)
  if (latestCaches.size <= MAX_CACHES) return
  const [oldest] = latestCaches
  latestCaches.delete(oldest!)
  oldest!.clear()
}
