import type { Model } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import { onCacheDrop } from '../../tenancy/cache'
import { readChangePosition } from '../changes/tracked-changes'

const MAX_CACHED_CHARACTERS = 8 << 20 // of all values of a thread
const ENTRY_CHARACTERS = 200 // what an entry takes beside its value
const MAX_AGE_MS = 10_000 // without tracking: commands beside the server do not count their commits

type CacheEntry = { value: unknown; size: number }
const entries = new Map<string, CacheEntry>()
let cachedCharacters = 0

/** Returns what is cached of a blueprint's entities by this name. The model's version and form belong to the name. */
export function getCached<T>(db: Db, model: Model, name: string): T | undefined {
  const key = toKey(db, model, name)
  const entry = entries.get(key)
  if (!entry) return
  // The entries that were used last are removed last.
  entries.delete(key)
  entries.set(key, entry)
  return entry.value as T
}

/** Caches a value with its size in characters, unless it is too large. The entries unused for longest are removed. */
export function setCached(db: Db, model: Model, name: string, value: unknown, characters = 0) {
  const key = toKey(db, model, name)
  removeEntry(key)
  const size = characters + key.length + ENTRY_CHARACTERS
  if (size > MAX_CACHED_CHARACTERS) return
  entries.set(key, { value, size })
  cachedCharacters += size
  for (const oldest of entries.keys()) {
    if (cachedCharacters <= MAX_CACHED_CHARACTERS) break
    removeEntry(oldest)
  }
}

/**
 * Returns what `load` reads of a blueprint's entities. It is cached until one of them changes, where changes are tracked;
 * otherwise only in reader threads, until the tenant is written to, for ten seconds at most.
 */
export async function readUntilChange<T>(
  db: Db,
  model: Model,
  name: string,
  load: () => Promise<T>,
  sizeOf: (value: T) => number = () => 0,
): Promise<T> {
  const time = performance.now()
  // Read before the value, so that a change in between is noticed by the next reader.
  const version = await readVersion(db, model)
  if (version === undefined) return load()
  const existing = getCached<{ version: string; until: number; value: T }>(db, model, name)
  if (existing?.version === version && existing.until > time) return existing.value
  const value = await load()
  const until = version.startsWith(COMMIT) ? time + MAX_AGE_MS : Number.POSITIVE_INFINITY
  setCached(db, model, name, { version, until, value }, sizeOf(value))
  return value
}

const COMMIT = 'commit '

/** Returns a text that differs once entities of the blueprint may have changed, or undefined when nobody knows it. */
async function readVersion(db: Db, model: Model): Promise<string | undefined> {
  if (db.isUncached) return
  const { commitVersion } = db.origin ?? db
  const commit = commitVersion && COMMIT + commitVersion()
  const position = await readChangePosition(db, model.key)
  return position ? `change ${position.started} ${position.number}` : commit
}

function removeEntry(key: string) {
  cachedCharacters -= entries.get(key)?.size ?? 0
  entries.delete(key)
}

const databaseNumbers = new WeakMap<Db, number>()
let lastNumber = 0
onCacheDrop((db) => databaseNumbers.delete(db))

function toKey(db: Db, { _id, version, form }: Model, name: string): string {
  const origin = db.origin ?? db
  const number = databaseNumbers.get(origin) ?? ++lastNumber
  databaseNumbers.set(origin, number)
  return `${number} ${_id} ${version} ${form} ${name}`
}
