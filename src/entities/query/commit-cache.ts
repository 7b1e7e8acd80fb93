import type { Db } from '../../storage/port'

const MAX_CACHED_CHARACTERS = 8 << 20 // of all values of a thread
const ENTRY_CHARACTERS = 200 // what an entry takes beside its value
const MAX_AGE_MS = 10_000 // commands beside the server do not count their commits

type CacheEntry = { value: unknown; version: number; readAt: number; size: number }
const entries = new Map<string, CacheEntry>()
let cachedCharacters = 0

/** Tells whether values can be cached until the next commit: only threads that write nothing notice every commit. */
export const knowsCommits = (db: Db) => !!(db.origin ?? db).commitVersion

/**
 * Returns what `load` reads from a database. A reader thread caches it until the tenant is written to, for ten seconds
 * at most and while there is room; `sizeOf` returns the size of a value in characters.
 */
export async function readUntilCommit<T>(
  db: Db,
  name: string,
  load: () => Promise<T>,
  sizeOf: (value: T) => number = () => 0,
): Promise<T> {
  const origin = db.origin ?? db
  if (!origin.commitVersion) return load()
  const [key, version, readAt] = [`${databaseNumber(origin)} ${name}`, origin.commitVersion(), performance.now()]
  const existing = entries.get(key)
  if (existing?.version === version && readAt - existing.readAt < MAX_AGE_MS) return existing.value as T
  const value = await load()
  forget(key)
  const size = sizeOf(value) + key.length + ENTRY_CHARACTERS
  if (size > MAX_CACHED_CHARACTERS) return value
  entries.set(key, { value, version, readAt, size })
  cachedCharacters += size
  // The oldest entries are removed first.
  for (const oldest of entries.keys()) {
    if (cachedCharacters <= MAX_CACHED_CHARACTERS) break
    forget(oldest)
  }
  return value
}

function forget(key: string) {
  cachedCharacters -= entries.get(key)?.size ?? 0
  entries.delete(key)
}

const databaseNumbers = new WeakMap<Db, number>()
let lastNumber = 0

function databaseNumber(db: Db): number {
  const number = databaseNumbers.get(db) ?? ++lastNumber
  databaseNumbers.set(db, number)
  return number
}
