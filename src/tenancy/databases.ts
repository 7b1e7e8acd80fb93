import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { config } from '../config'
import { now } from '../core/clock'
import { ConfigError } from '../core/config-error'
import type { Postgres } from '../storage/engines/postgres/engine'
import { Sqlite } from '../storage/engines/sqlite/engine'
import { DatabasePool } from '../storage/pool'
import type { DatabaseLocation, Engine } from '../storage/port'

const FILES_PER_TENANT = 7 // six of a database, and one that is being opened or closed
const RESERVED_FILES = 512 // connections of callers, for the most part

const sqlite = new Sqlite({
  driver: config.ATOLL_SQLITE_DRIVER,
  folder: config.ATOLL_TENANTS,
  synchronous: config.ATOLL_DURABILITY,
  lockTimeout: config.ATOLL_WRITE_DEADLINE,
  vectorExtension: config.ATOLL_SQLITE_VEC,
})

/** The cluster that ATOLL_DATABASE_URL leads to. */
export const MAIN_CLUSTER = 'main'

/** The databases of PostgreSQL by name, as the settings have them. */
export const clusterUrls = new Map([
  ...(config.ATOLL_DATABASE_URL ? [[MAIN_CLUSTER, config.ATOLL_DATABASE_URL] as const] : []),
  ...config.ATOLL_DATABASE_CLUSTERS.split(/\s+/)
    .filter(Boolean)
    .map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)] as const),
])

// Who has files alone shall not wait for the driver of PostgreSQL.
const postgres = clusterUrls.size ? await import('../storage/engines/postgres/engine') : undefined
const clusters = new Map<string, Postgres>()

function clusterOf(name: string): Postgres {
  const existing = clusters.get(name)
  if (existing) return existing
  const url = clusterUrls.get(name)
  if (!url || !postgres) throw new ConfigError(`The cluster "${name}" is not configured. See ATOLL_DATABASE_CLUSTERS.`)
  const [deadline, connections] = [config.ATOLL_WRITE_DEADLINE, config.ATOLL_DATABASE_CONNECTIONS]
  const cluster = new postgres.Postgres({ url, deadline, connections })
  clusters.set(name, cluster)
  return cluster
}

/** Every cluster of the settings: what it runs, or why it cannot be asked. */
export const getClusterStates = () =>
  Promise.all(
    [...clusterUrls.keys()].map(async (name) => {
      const state = await clusterOf(name)
        .getServerInfo()
        .catch((error: Error) => ({ problem: error.message }))
      return { name, server: '', citus: false, problem: undefined as string | undefined, ...state }
    }),
  )

/** Undefined when another process has claimed the name. */
export const tryClaim = (name: string) => clusterOf(MAIN_CLUSTER).claim(name)

/** Has Citus move a bucket to another of its nodes, `host:port`. */
export const moveBucketToNode = (cluster: string, bucket: string, node: string) =>
  clusterOf(cluster).moveBucket(bucket, node)

/** A file where the place names no cluster. */
const routingEngine: Engine = {
  open: (place, migrations) => (place.cluster ? clusterOf(place.cluster) : sqlite).open(place, migrations),
  openTenantCopy: (place, migrations) =>
    (place.cluster ? clusterOf(place.cluster) : sqlite).openTenantCopy(place, migrations),
  remoteVersion: (place) => (place.cluster ? clusterOf(place.cluster).remoteVersion(place) : 0),
  vectorSearch: (place) => (place.cluster ? 'javascript' : sqlite.vectorSearch()),
  retire: async (place, migrations) => {
    if (place.cluster) await clusterOf(place.cluster).retire(place, migrations)
  },
  async close() {
    await Promise.all([sqlite, ...clusters.values()].map((one) => one.close()))
  },
}

/** How many tenants may be open at once. */
export const maxOpenTenants = config.ATOLL_OPEN_TENANTS || deriveMaxOpenTenants()

/** The one place that knows which engine serves. */
export const databases = new DatabasePool(routingEngine, {
  openCount: maxOpenTenants,
  deadline: config.ATOLL_WRITE_DEADLINE,
})

/** Makes this process the only server of the data; throws when another is. */
export const lockDataFolder = async () => {
  // Nodes that share a database share no folder, unless there are tenants in it.
  if (!config.ATOLL_DATABASE_URL || existsSync(join(config.ATOLL_TENANTS, 'registry.db'))) await sqlite.lockFolder()
}

export const tenantFolder = (tenant: string) => join(config.ATOLL_TENANTS, tenant)
export const createTenantFolder = (tenant: string) =>
  void mkdirSync(tenantFolder(tenant), { recursive: true, mode: 0o700 })
export const hasTenantFolder = (tenant: string) => existsSync(tenantFolder(tenant))
export const hasDatabase = (tenant: string) => existsSync(join(tenantFolder(tenant), 'data.db'))

/** Reads a whole database and tells what is wrong with it; nothing where its engine sees to that. */
export const checkDatabase = async (place: DatabaseLocation): Promise<string[]> =>
  place.cluster ? [] : sqlite.checkDatabase(place)

/** Moves a tenant's files to where nobody serves them, and returns the place. */
export function moveToTrash(tenant: string): string | undefined {
  if (!hasTenantFolder(tenant)) return
  const trash = join(config.ATOLL_TENANTS, '.trash')
  mkdirSync(trash, { recursive: true, mode: 0o700 })
  const target = join(trash, `${tenant}-${now()}`)
  renameSync(tenantFolder(tenant), target)
  return target
}

function deriveMaxOpenTenants() {
  try {
    const [, files] = readFileSync('/proc/self/limits', 'utf8').match(/^Max open files +(\d+)/m) ?? []
    return Math.min(5_000, Math.max(10, Math.floor((Number(files) - RESERVED_FILES) / FILES_PER_TENANT)))
  } catch {
    return 200 // a system that doesn't tell
  }
}
