import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { tenantMigrations } from '../../migrations'
import { config, hasSeveralProcesses } from '../config'
import { ConfigError } from '../core/config-error'
import { getProcessNumber, receiveFromSupervisor, sendToSupervisor } from '../core/server-processes'
import { CommitCounters, mapSharedMemory, removeSharedMemory } from '../storage/commit-counters'
import type { Postgres } from '../storage/engines/postgres/engine'
import { Sqlite } from '../storage/engines/sqlite/engine'
import type { FileCopyControl } from '../storage/engines/sqlite/file-copy'
import { describeFileSystemRisk, findFileSystemRisk } from '../storage/engines/sqlite/file-system'
import type { LogListener } from '../storage/engines/sqlite/log-observer'
import { type LogFrames, type LogPosition, listFramePages } from '../storage/engines/sqlite/log-reader'
import { type TurnMessage, WriteTurns } from '../storage/engines/sqlite/write-turns'
import { DatabasePool } from '../storage/pool'
import type { DatabaseLocation, Engine } from '../storage/port'

/** The topic of messages about the turns to write. */
export const WRITE_TURN_TOPIC = 'write-turn'
const FILES_PER_TENANT = 7 // six for a database, and one for opening or closing
const RESERVED_FILES = 512 // mostly for client connections

/** The commits to the data of tenants, for the threads of this process, and for all processes that serve together. */
export const commitCounters = new CommitCounters(
  hasSeveralProcesses ? () => mapSharedMemory(config.ATOLL_TENANTS) : undefined,
)

const sqlite = new Sqlite({
  driver: config.ATOLL_SQLITE_DRIVER,
  folder: config.ATOLL_TENANTS,
  synchronous: config.ATOLL_DURABILITY,
  lockTimeout: config.ATOLL_WRITE_DEADLINE,
  vectorExtension: config.ATOLL_SQLITE_VEC,
  commitCounters,
  // A thread that reads has connections beside those of the main thread.
  isShared: hasSeveralProcesses || !Bun.isMainThread,
  writeTurns: joinWriteTurns(),
})

/** Returns the turns of this process to write to files, where it serves them together with others. */
function joinWriteTurns(): WriteTurns | undefined {
  if (getProcessNumber() === undefined) return
  const turns = new WriteTurns((message) => sendToSupervisor(WRITE_TURN_TOPIC, message), config.ATOLL_WRITE_DEADLINE)
  receiveFromSupervisor(WRITE_TURN_TOPIC, (message: TurnMessage) => turns.receive(message))
  return turns
}

/** The name of the cluster of ATOLL_DATABASE_URL. */
export const MAIN_CLUSTER = 'main'

/** The URLs of the configured PostgreSQL clusters by name. */
export const clusterUrls = new Map([
  ...(config.ATOLL_DATABASE_URL ? [[MAIN_CLUSTER, config.ATOLL_DATABASE_URL] as const] : []),
  ...config.ATOLL_DATABASE_CLUSTERS.split(/\s+/)
    .filter(Boolean)
    .map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)] as const),
])

// The driver of PostgreSQL is loaded only when it is needed, because it slows the start down. Not by `await import`:
// threads of a binary with bytecode never get past a module that awaits (Bun 1.4.5).
const postgres: typeof import('../storage/engines/postgres/engine') | undefined = clusterUrls.size
  ? require('../storage/engines/postgres/engine')
  : undefined
const clusters = new Map<string, Postgres>()
const CONNECTIONS_PER_READER_THREAD = 2 // of each cluster

function clusterOf(name: string): Postgres {
  const existing = clusters.get(name)
  if (existing) return existing
  const url = clusterUrls.get(name)
  if (!url || !postgres) throw new ConfigError(`The cluster "${name}" is not configured. See ATOLL_DATABASE_CLUSTERS.`)
  assertOneHost(name, url)
  const cluster = new postgres.Postgres({
    url,
    deadline: config.ATOLL_WRITE_DEADLINE,
    connections: Bun.isMainThread ? config.ATOLL_DATABASE_CONNECTIONS : CONNECTIONS_PER_READER_THREAD,
    isCommitFast: config.ATOLL_DURABILITY === 'normal',
    commitCounters,
    isReaderThread: !Bun.isMainThread,
  })
  clusters.set(name, cluster)
  return cluster
}

/** The driver connects to one host, and its parser throws a bare TypeError. @throws ConfigError */
function assertOneHost(name: string, url: string) {
  const setting = name === MAIN_CLUSTER && config.ATOLL_DATABASE_URL ? 'ATOLL_DATABASE_URL' : `The cluster "${name}"`
  const authority = /^[a-z]+:\/\/(?:[^/?#]*@)?([^/?#]*)/i.exec(url)?.[1] ?? ''
  if (authority.includes(','))
    throw new ConfigError(
      `${setting} names several hosts (${authority}). Name a single address that leads to the primary, such as that of PgBouncer, HAProxy, or a virtual IP.`,
    )
  if (!URL.canParse(url, 'postgres://base'))
    throw new ConfigError(
      `${setting} is no valid address. Write postgres://user:password@host:5432/database, with special characters of the password as %XX.`,
    )
}

/** Returns for every configured cluster the version of its server, or why it cannot be reached. */
export const getClusterStates = () =>
  Promise.all(
    [...clusterUrls.keys()].map(async (name) => {
      const state = await clusterOf(name)
        .getServerInfo()
        .catch((error: Error) => ({ problem: error.message }))
      return { name, server: '', citus: false, problem: undefined as string | undefined, ...state }
    }),
  )

/** Returns the connections to each PostgreSQL cluster that this process uses. */
export const countConnections = () =>
  [...clusters].map(([name, cluster]) => ({ cluster: name, ...cluster.countConnections() }))

/** Claims a name, or returns undefined when another process has claimed it. */
export const tryClaim = (name: string) => clusterOf(MAIN_CLUSTER).claim(name)

/** Returns whether a process has claimed a name. */
export const isClaimed = (name: string) => clusterOf(MAIN_CLUSTER).isClaimed(name)

/** Moves a bucket to another Citus node, `host:port`. @throws 400 INVALID_INPUT, 404 NODE_NOT_FOUND, 409 NO_CITUS */
export const moveBucketToNode = (cluster: string, bucket: string, node: string) =>
  clusterOf(cluster).moveBucket(bucket, node)

/** Uses PostgreSQL for a location with a cluster, and SQLite for others. */
const routingEngine: Engine = {
  open: (place, migrations) => (place.cluster ? clusterOf(place.cluster) : sqlite).open(place, migrations),
  openTenantCopy: (place, migrations) =>
    (place.cluster ? clusterOf(place.cluster) : sqlite).openTenantCopy(place, migrations),
  remoteVersion: (place) => (place.cluster ? clusterOf(place.cluster) : sqlite).remoteVersion(place),
  readSchemaVersion: (place) => (place.cluster ? clusterOf(place.cluster) : sqlite).readSchemaVersion(place),
  vectorSearch: (place) => (place.cluster ? 'javascript' : sqlite.vectorSearch()),
  wordIndex: (place) => (place.cluster ? 'gin' : sqlite.wordIndex()),
  retire: async (place, migrations) => {
    if (place.cluster) await clusterOf(place.cluster).retire(place, migrations)
  },
  async close() {
    await Promise.all([sqlite, ...clusters.values()].map((engine) => engine.close()))
  },
}

/** The number of tenants whose databases may be open at once. */
export const maxOpenTenants = config.ATOLL_OPEN_TENANTS || deriveMaxOpenTenants()

/** All databases, whatever their engine. */
export const databases = new DatabasePool(routingEngine, {
  openCount: maxOpenTenants,
  deadline: config.ATOLL_WRITE_DEADLINE,
  slowAfter: config.ATOLL_SLOW_QUERY,
})

// Nodes that share a database share no folder, unless the folder still contains tenants.
const hasDatabasesInFolder = () => !config.ATOLL_DATABASE_URL || hasRegistryFile()

/**
 * Makes this process the only server of the data folder. @throws ConfigError when another process serves it, or its file
 * system is known to damage databases
 */
export const lockDataFolder = async () => {
  if (!hasDatabasesInFolder()) return
  const risk = findDataFolderRisk()
  if (risk?.isUnsafe) throw new ConfigError(risk.message)
  await sqlite.lockFolder()
}

/** Returns why the file system of the data folder may damage databases, or undefined when it holds none or is local. */
export function findDataFolderRisk() {
  const risk = hasDatabasesInFolder() ? findFileSystemRisk(config.ATOLL_TENANTS) : undefined
  return risk && { ...risk, message: describeFileSystemRisk(config.ATOLL_TENANTS, risk) }
}

/** Removes shared memory and empties logs that the processes of a server have left when they ended. */
export async function removeLeftovers() {
  if (!existsSync(config.ATOLL_TENANTS)) return
  removeSharedMemory(config.ATOLL_TENANTS)
  const folders = readdirSync(config.ATOLL_TENANTS).filter((name) => !name.startsWith('.'))
  await sqlite.removeLeftLogs(['registry.db', ...folders.map((folder) => `${folder}/data.db`)])
}

/** Tells whether the data folder has a registry of its own. */
export const hasRegistryFile = () => existsSync(join(config.ATOLL_TENANTS, 'registry.db'))

export const tenantFolder = (tenant: string) => join(config.ATOLL_TENANTS, tenant)
export const createTenantFolder = (tenant: string) =>
  void mkdirSync(tenantFolder(tenant), { recursive: true, mode: 0o700 })
export const hasTenantFolder = (tenant: string) => existsSync(tenantFolder(tenant))
/** Tells whether the log of a tenant's file has something, because it is open, or was left by a process that was killed. */
export const hasLog = (tenant: string) =>
  !!statSync(join(tenantFolder(tenant), 'data.db-wal'), { throwIfNoEntry: false })?.size
export const hasDatabase = (tenant: string) => existsSync(join(tenantFolder(tenant), 'data.db'))

/**
 * Reads a whole database and returns what is wrong with it. PostgreSQL checks its own data, so the list is empty there.
 */
export const checkDatabase = async (place: DatabaseLocation, isComplete = false): Promise<string[]> =>
  place.cluster ? [] : sqlite.checkDatabase(place, isComplete)

/** Builds all indexes of a database in a file anew, while it is used. */
export const rebuildIndexes = (place: DatabaseLocation) => sqlite.rebuildIndexes(place)

/** Checks a database file at any path completely, and tells what it contains. */
export const inspectDatabaseFile = (path: string) => sqlite.inspectFile(path)

/** Copies a database of a file into a new file while it is used. A process that serves it must not call this. */
export const copyDatabase = (place: DatabaseLocation, copy: string, control?: FileCopyControl) =>
  sqlite.copyDatabase(place, copy, control)

/** Returns the rows of one query of a database file at any path, which nobody writes to. */
export const queryDatabaseFile = (path: string, sql: string) => sqlite.queryFile(path, sql)

/** Runs one statement in the data of a tenant in PostgreSQL, which other processes may serve. */
export async function executeOnce(place: DatabaseLocation, sql: string, params: unknown[]): Promise<void> {
  const connection = await databases.openTenantCopy(place, tenantMigrations)
  try {
    await connection.runExclusive(({ query }) => query(sql, params))
  } finally {
    await connection.close()
  }
}

export { type LogFrames, type LogPosition, listFramePages }

/** Tells a listener what is added to the logs of files that are opened from now on. */
export const observeLogs = (listener: LogListener | undefined) => sqlite.observeLogs(listener)

/** Lets the listener know what was added to the logs since the last call. */
export const readLogs = () => sqlite.readLogs()

/** Claims a file of the data folder until the result is disposed of, or this process ends; undefined while it is claimed. */
export const tryLockFile = (name: string) => sqlite.tryLock(join(config.ATOLL_TENANTS, name))

function deriveMaxOpenTenants() {
  try {
    const [, files] = readFileSync('/proc/self/limits', 'utf8').match(/^Max open files +(\d+)/m) ?? []
    return Math.min(5_000, Math.max(10, Math.floor((Number(files) - RESERVED_FILES) / FILES_PER_TENANT)))
  } catch {
    return 200 // the system does not say
  }
}
