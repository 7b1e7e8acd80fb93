import { dirname } from 'node:path'
import { CachedConnection } from './connection'
import { type DatabaseFiles, toOpenError } from './database-files'
import type { OpenFile } from './drivers'
import type { WriteAccess } from './lazy-writer'
import { WalSync } from './wal-sync'

/** The cache size that the connections of a thread share, and the largest and the smallest for one (KiB). */
const [ALL_CACHES_KIB, MAX_CACHE_KIB, MIN_CACHE_KIB] = [128 << 10, 16 << 10, 2 << 10]

/**
 * Returns the cache size for the latest of some connections (KiB). The operating system caches other pages, and reading one
 * again takes a microsecond. `soft_heap_limit` has no effect in Bun.
 */
export const chooseCacheSize = (connections: number) =>
  Math.max(MIN_CACHE_KIB, Math.min(MAX_CACHE_KIB, Math.floor(ALL_CACHES_KIB / connections)))

// SQLite's own wait for another process blocks this one, so it is short; `#retryWhileBusy` does the rest. The cache
// grows only as it is used, and is released when the database is idle. Checkpoints run in another thread; SQLite's own
// are only for a log that is far behind.
export const choosePragmas = () => `pragma busy_timeout = 20; pragma journal_mode = wal; pragma foreign_keys = on;
  pragma cache_size = -${chooseCacheSize(CachedConnection.openCount)}; pragma wal_autocheckpoint = 200000;
  pragma temp_store = memory`
/** The words of the full-text index. The table stores nothing, so each connection creates its own. */
const CREATE_VOCABULARY_SQL = `create virtual table if not exists temp.search_vocabulary using fts5vocab('main', 'search_words', 'instance')`

type ConnectionOptions = { openFile: OpenFile; lockTimeout: number }

/** Returns a connection to an existing file that only reads. @throws 503 BUSY when descriptors are used up */
export const openReader = (path: string, options: ConnectionOptions): Promise<CachedConnection> =>
  connect(path, options, 'pragma query_only = on')

/**
 * Opens what writes to the files of an open database. With `folder`, that of all databases, the log is synchronized by
 * `WalSync`. @throws DatabaseDamaged when other files are in their place, 503 BUSY when descriptors are used up
 */
export async function openWriter(
  files: DatabaseFiles,
  options: ConnectionOptions,
  folder: string | undefined,
): Promise<WriteAccess> {
  const { path } = files
  files.requireInPlace()
  const connection = await connect(path, options, 'pragma synchronous = normal')
  try {
    files.requireInPlace()
    const log = folder === undefined ? undefined : new WalSync(path, [...new Set([dirname(path), folder])])
    return { connection, log }
  } catch (error) {
    const translated = toOpenError(error, path)
    connection.close()
    throw translated
  }
}

/** Returns a connection to an existing file, after running `pragmas`. @throws 503 BUSY when descriptors are used up */
export async function connect(path: string, { openFile, lockTimeout }: ConnectionOptions, pragmas: string) {
  let connection: CachedConnection | undefined
  try {
    connection = new CachedConnection(openFile(path, true), lockTimeout)
    await connection.executePatiently(`${choosePragmas()}; ${CREATE_VOCABULARY_SQL}; ${pragmas}`)
    return connection
  } catch (error) {
    const translated = toOpenError(error, path)
    connection?.close()
    throw translated
  }
}
