import type { Db } from '../../storage/port'

const MAX_SIZE = 8 << 20 // of all values of a thread, in characters
const ENTRY_SIZE = 200 // what keeping a value takes beside the value
const MAX_AGE_MS = 10_000 // commands beside the server do not count their commits

type CacheEntry = { value: unknown; version: number; readAt: number; size: number }
const entries = new Map<string, CacheEntry>()
let totalSize = 0

/** Tells whether what is read can be kept until a commit: only threads that write nothing know of all commits. */
export const knowsCommits = (db: Db) => !!(db.origin ?? db).commitVersion

/**
 * Returns what `load` reads from a database. A reader thread keeps it until somebody writes to the tenant, at most
 * for some seconds and as long as there is room; `sizeOf` returns the size of a value in characters.
 */
export async function readUntilCommit<T>(
  db: Db,
  name: string,
  load: () => Promise<T>,
  sizeOf: (value: T) => number = () => 0,
): Promise<T> {
  const origin = db.origin ?? db
  if (!origin.commitVersion) return load()
  const [key, version, readAt] = [`${numberOf(origin)} ${name}`, origin.commitVersion(), performance.now()]
  const existing = entries.get(key)
  if (existing?.version === version && readAt - existing.readAt < MAX_AGE_MS) return existing.value as T
  const value = await load()
  forget(key)
  const size = sizeOf(value) + key.length + ENTRY_SIZE
  if (size > MAX_SIZE) return value
  entries.set(key, { value, version, readAt, size })
  totalSize += size
  // The oldest leave first.
  for (const oldest of entries.keys()) {
    if (totalSize <= MAX_SIZE) break
    forget(oldest)
  }
  return value
}

function forget(key: string) {
  totalSize -= entries.get(key)?.size ?? 0
  entries.delete(key)
}

const numbers = new WeakMap<Db, number>()
let lastNumber = 0

function numberOf(db: Db): number {
  const number = numbers.get(db) ?? ++lastNumber
  numbers.set(db, number)
  return number
}
