import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { config } from '../config'
import { now } from '../core/clock'
import { ConfigError } from '../core/config-error'
import type { Postgres } from '../storage/engines/postgres/engine'
import { Sqlite } from '../storage/engines/sqlite/engine'
import type { Engine, Place } from '../storage/port'
import { Storage } from '../storage/store'

const FILES_PER_TENANT = 7 // six of a database, and one that is being opened or closed
const FILES_FOR_THE_REST = 512 // connections of callers, for the most part

const sqlite = new Sqlite({
  driver: config.ATOLL_SQLITE_DRIVER,
  folder: config.ATOLL_TENANTS,
  synchronous: config.ATOLL_DURABILITY,
  patience: config.ATOLL_WRITE_DEADLINE,
  vectors: config.ATOLL_SQLITE_VEC,
})

/** The cluster that ATOLL_DATABASE_URL leads to. */
export const MAIN = 'main'

/** The databases of PostgreSQL by name, as the settings have them. */
export const clusterUrls = new Map([
  ...(config.ATOLL_DATABASE_URL ? [[MAIN, config.ATOLL_DATABASE_URL] as const] : []),
  ...config.ATOLL_DATABASE_CLUSTERS.split(/\s+/)
    .filter(Boolean)
    .map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)] as const),
])

// Who has files alone shall not wait for the driver of PostgreSQL.
const postgres = clusterUrls.size ? await import('../storage/engines/postgres/engine') : undefined
const clusters = new Map<string, Postgres>()

function clusterOf(name: string): Postgres {
  const known = clusters.get(name)
  if (known) return known
  const url = clusterUrls.get(name)
  if (!url || !postgres)
    throw new ConfigError(`No setting says where the cluster "${name}" is: see ATOLL_DATABASE_CLUSTERS.`)
  const [deadline, connections] = [config.ATOLL_WRITE_DEADLINE, config.ATOLL_DATABASE_CONNECTIONS]
  const cluster = new postgres.Postgres({ url, deadline, connections })
  clusters.set(name, cluster)
  return cluster
}

/** Every cluster of the settings: what it runs, or why it cannot be asked. */
export const clusterStates = () =>
  Promise.all(
    [...clusterUrls.keys()].map(async (name) => {
      const told = await clusterOf(name)
        .state()
        .catch((error: Error) => ({ problem: error.message }))
      return { name, server: '', citus: false, problem: undefined as string | undefined, ...told }
    }),
  )

/** Undefined when another process has claimed the name. */
export const claim = (name: string) => clusterOf(MAIN).claim(name)

/** Has Citus move a bucket to another of its nodes, `host:port`. */
export const moveWithin = (cluster: string, bucket: string, node: string) => clusterOf(cluster).moveBucket(bucket, node)

/** A file where the place names no cluster. */
const engine: Engine = {
  open: (place, migrations) => (place.cluster ? clusterOf(place.cluster) : sqlite).open(place, migrations),
  bulk: (place, migrations) => (place.cluster ? clusterOf(place.cluster) : sqlite).bulk(place, migrations),
  heard: (place) => (place.cluster ? clusterOf(place.cluster).heard(place) : 0),
  comparing: (place) => (place.cluster ? 'javascript' : sqlite.comparing()),
  end: async (place, migrations) => {
    if (place.cluster) await clusterOf(place.cluster).end(place, migrations)
  },
  async close() {
    await Promise.all([sqlite, ...clusters.values()].map((one) => one.close()))
  },
}

/** How many tenants may be open at once. */
export const openLimit = config.ATOLL_OPEN_TENANTS || derivedLimit()

/** The one place that knows which engine serves. */
export const storage = new Storage(engine, { open: openLimit, deadline: config.ATOLL_WRITE_DEADLINE })

/** Makes this process the only server of the data; throws when another is. */
export const ownData = async () => {
  // Nodes that share a database share no folder, unless there are tenants in it.
  if (!config.ATOLL_DATABASE_URL || existsSync(join(config.ATOLL_TENANTS, 'registry.db'))) await sqlite.own()
}

export const folderOf = (tenant: string) => join(config.ATOLL_TENANTS, tenant)
export const makeFolder = (tenant: string) => void mkdirSync(folderOf(tenant), { recursive: true, mode: 0o700 })
export const hasFolder = (tenant: string) => existsSync(folderOf(tenant))
export const hasDatabase = (tenant: string) => existsSync(join(folderOf(tenant), 'data.db'))

/** Reads a whole database and tells what is wrong with it; nothing where its engine sees to that. */
export const checkDatabase = async (place: Place): Promise<string[]> => (place.cluster ? [] : sqlite.check(place))

/** Moves a tenant's files to where nobody serves them, and returns the place. */
export function discard(tenant: string): string | undefined {
  if (!hasFolder(tenant)) return
  const trash = join(config.ATOLL_TENANTS, '.trash')
  mkdirSync(trash, { recursive: true, mode: 0o700 })
  const place = join(trash, `${tenant}-${now()}`)
  renameSync(folderOf(tenant), place)
  return place
}

function derivedLimit() {
  try {
    const [, files] = readFileSync('/proc/self/limits', 'utf8').match(/^Max open files +(\d+)/m) ?? []
    return Math.min(5_000, Math.max(10, Math.floor((Number(files) - FILES_FOR_THE_REST) / FILES_PER_TENANT)))
  } catch {
    return 200 // a system that doesn't tell
  }
}
