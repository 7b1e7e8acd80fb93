import type { Db, Store, Tx } from '../storage/port'

/** What is cached in memory, by the data that it was read from. */
export type CacheTopic =
  | 'tenants'
  | 'blueprints'
  | 'actors'
  | 'configurations'
  | 'changes'
  | 'plugins'
  | 'lambdas'
  | 'connections'
  | 'integrations'
  | 'certificates'
  | 'sites'

/** Topics whose values also depend on another topic, and are dropped with it. */
const DEPENDENT_TOPICS: Partial<Record<CacheTopic, CacheTopic>> = { configurations: 'actors', tenants: 'certificates' }

const VERSION_CHECK_INTERVAL_MS = 1_000 // a change by another process is seen after so long at the latest
/** How long after a change every process knows it, and none works with what was before any more (ms). */
export const PROPAGATION_MS = VERSION_CHECK_INTERVAL_MS + 500

const MAX_VALUES_PER_REGION = 20_000

type CacheRegion = Map<string, unknown>
type TenantCache = {
  checkedAt: number
  remoteVersion: number
  /** Resolves when the versions that are being read are known. */
  refreshing?: Promise<void>
  versions: Map<string, unknown>
  regions: Map<CacheTopic, CacheRegion>
}

const caches = new WeakMap<Db, TenantCache>()

/**
 * Returns a value of one tenant, which is cached in memory until a process changes its topic; without a promise when it
 * is cached. A missing value (undefined) is loaded again each time, so that callers cannot fill the memory with keys
 * that do not exist.
 */
export function cached<Value>(
  { db, remoteVersion }: Pick<Store, 'db' | 'remoteVersion'>,
  topic: CacheTopic,
  key: string,
  load: () => Promise<Value>,
): Value | Promise<Value> {
  const cache = cacheOf(db)
  const currentVersion = remoteVersion()
  if (currentVersion !== cache.remoteVersion || performance.now() - cache.checkedAt > VERSION_CHECK_INTERVAL_MS)
    startRefresh(db, cache, currentVersion)
  // What is cached may be hours old until then.
  if (cache.refreshing) return cache.refreshing.then(() => loadIntoCache(cache, topic, key, load))
  return (regionOf(cache, topic).get(key) as Value | undefined) ?? loadIntoCache(cache, topic, key, load)
}

async function loadIntoCache<Value>(
  cache: TenantCache,
  topic: CacheTopic,
  key: string,
  load: () => Promise<Value>,
): Promise<Value> {
  const region = regionOf(cache, topic)
  const existing = region.get(key)
  if (existing !== undefined) return existing as Value
  const value = await load()
  // A region that was dropped during the load takes no value, because it may be stale already.
  if (value !== undefined && regionOf(cache, topic) === region) {
    if (region.size >= MAX_VALUES_PER_REGION) region.clear()
    region.set(key, value)
  }
  return value
}

/**
 * Runs a write that invalidates a topic, in this process at once and in others within a second. Returns the result of
 * the work.
 */
export async function writeInvalidating<T>(store: Store, topic: CacheTopic, work: (tx: Tx) => Promise<T>): Promise<T> {
  try {
    return await store.write(async (tx) => {
      const result = await work(tx)
      await bumpVersion(tx, topic)
      return result
    })
  } finally {
    invalidate(store, topic)
  }
}

/**
 * Invalidates a topic: in this process when its readers see the commit, and in others within a second. Call it in the
 * transaction that changes the data.
 */
export async function bumpVersion(tx: Tx, topic: CacheTopic) {
  tx.onVisible((db) => dropRegion(cacheOf(db), topic))
  await tx.query(
    'insert into versions (topic, version) values (?, 1) on conflict ("topic") do update set version = versions.version + 1',
    [topic],
  )
}

/** Invalidates a topic in this process. Call it after the commit. */
export const invalidate = ({ db }: Store, topic: CacheTopic) => dropRegion(cacheOf(db), topic)

const dropListeners: ((db: Db) => void)[] = []

/** Has a listener called whenever everything that is cached of a database has to leave the memory. */
export const onCacheDrop = (listener: (db: Db) => void) => void dropListeners.push(listener)

/** Removes everything that is cached of a tenant from memory. It is loaded again when it is needed. */
export function dropCache({ db }: Pick<Store, 'db'>) {
  caches.delete(db)
  for (const listener of dropListeners) listener(db)
}

function dropRegion({ regions }: TenantCache, topic: CacheTopic) {
  regions.delete(topic)
  if (DEPENDENT_TOPICS[topic]) regions.delete(DEPENDENT_TOPICS[topic])
}

function cacheOf(db: Db): TenantCache {
  const existing = caches.get(db)
  if (existing) return existing
  const cache: TenantCache = {
    checkedAt: Number.NEGATIVE_INFINITY,
    remoteVersion: 0,
    versions: new Map(),
    regions: new Map(),
  }
  caches.set(db, cache)
  return cache
}

function regionOf(cache: TenantCache, topic: CacheTopic): CacheRegion {
  const existing = cache.regions.get(topic)
  if (existing) return existing
  const region: CacheRegion = new Map()
  cache.regions.set(topic, region)
  return region
}

function startRefresh(db: Db, cache: TenantCache, remoteVersion: number) {
  const refreshing = refreshVersions(db, cache, remoteVersion).finally(() => {
    if (cache.refreshing === refreshing) cache.refreshing = undefined
  })
  cache.refreshing = refreshing
}

async function refreshVersions(db: Db, cache: TenantCache, remoteVersion: number) {
  cache.checkedAt = performance.now()
  cache.remoteVersion = remoteVersion
  const rows = await db.query('select topic, version from versions').catch((error) => {
    cache.checkedAt = Number.NEGATIVE_INFINITY // the next read checks again
    throw error
  })
  for (const [topic, version] of rows as [CacheTopic, unknown][]) {
    if (cache.versions.get(topic) === version) continue
    cache.versions.set(topic, version)
    dropRegion(cache, topic)
  }
}
