import { toChunks } from '../../../core/chunks'
import type { Db } from '../../../storage/port'
import { copyVector } from '../embeddings'
import type { StoreRow } from '../stores'

/** The vectors of some chunks of a file, concatenated, and the numbers of the chunks. */
export type VectorBlock = { numbers: number[]; vectors: Float32Array }

type StoreFile = { _id: string; chunks: number }
/** The cached vectors of a store, by file. */
type CachedStore = { db: Db; version: number; bytes: number; files: Promise<Map<string, VectorBlock[]>> }

const MAX_CACHE_BYTES = 256 << 20 // bytes, for all tenants
const MAX_CACHE_BYTES_PER_TENANT = 128 << 20
const MAX_CACHED_STORES = 10_000
const CHUNKS_PER_READ = 250 // chunks that are read at once, which takes some ms
const FILES_PER_READ = 400 // files of which chunks are read at once

/** Recently searched stores by their ids, which are unique among tenants. The least recently used comes first. */
const storeCache = new Map<string, CachedStore>()

/**
 * Yields the vectors of a store, from the cache if they fit into it. Files never change, so their cached vectors stay valid.
 * The list of files is read again when the version of the store has changed, by any process.
 */
export async function* readVectorBlocks(db: Db, store: StoreRow): AsyncGenerator<VectorBlock> {
  const bytes = store.chunks * store.dimension! * Float32Array.BYTES_PER_ELEMENT
  if (bytes > MAX_CACHE_BYTES_PER_TENANT) {
    for await (const [, block] of readBlocks(db, await listReadyFiles(db, store), store.dimension!)) yield block
    return
  }
  for (const blocks of (await getCachedFiles(db, store, bytes)).values()) yield* blocks
}

function getCachedFiles(db: Db, store: StoreRow, bytes: number) {
  const origin = db.origin ?? db
  const entry = storeCache.get(store._id)
  const entryOfDb = entry?.db === origin ? entry : undefined
  // Others wait for the same files, so loading them does not depend on the caller that came first.
  const files = entryOfDb?.version === store.version ? entryOfDb.files : loadFiles(origin, store, entryOfDb?.files)
  storeCache.delete(store._id)
  storeCache.set(store._id, { db: origin, version: store.version, bytes, files })
  files.catch(() => storeCache.get(store._id)?.files === files && storeCache.delete(store._id))
  evictOldest(origin)
  return files
}

/** Evicts the least recently used stores until the cache is within its limits. */
function evictOldest(db: Db) {
  let [totalBytes, tenantBytes] = [0, 0]
  for (const entry of storeCache.values()) {
    totalBytes += entry.bytes
    if (entry.db === db) tenantBytes += entry.bytes
  }
  for (const [key, entry] of storeCache) {
    const isFull = totalBytes > MAX_CACHE_BYTES || storeCache.size > MAX_CACHED_STORES
    if (!isFull && tenantBytes <= MAX_CACHE_BYTES_PER_TENANT) return
    if (!isFull && entry.db !== db) continue
    storeCache.delete(key)
    totalBytes -= entry.bytes
    if (entry.db === db) tenantBytes -= entry.bytes
  }
}

/** Loads the vectors of a store. Files that are in `before` are not read again. */
async function loadFiles(db: Db, store: StoreRow, before?: Promise<Map<string, VectorBlock[]>>) {
  // A failed load is repeated here.
  const [files, loaded] = [await listReadyFiles(db, store), await before?.catch(() => undefined)]
  const blocksByFile = new Map<string, VectorBlock[]>()
  for (const { _id } of files) blocksByFile.set(_id, loaded?.get(_id) ?? [])
  const unloaded = files.filter(({ _id }) => !loaded?.has(_id))
  for await (const [file, block] of readBlocks(db, unloaded, store.dimension!)) blocksByFile.get(file)!.push(block)
  return blocksByFile
}

/** Returns the complete files of a store, in the order of their ids. */
export const listReadyFiles = async (db: Db, { _id }: StoreRow): Promise<StoreFile[]> => {
  const rows = await db.query('select _id, chunks from knowledge_files where store = ? and ready = 1 order by _id', [
    _id,
  ])
  return rows.map(([_id, chunks]) => ({ _id, chunks }) as StoreFile)
}

type ChunkRow<Value> = [number: number, file: string, position: number, value: Value]
/** The SQL expression to select for each chunk, and how many chunks to read at once. */
type ChunkQuery = { sql: string; params?: unknown[]; batchSize: number }

async function* readBlocks(db: Db, files: StoreFile[], dimension: number): AsyncGenerator<[file: string, VectorBlock]> {
  for await (const rows of readVectorChunks<Uint8Array>(db, files, { sql: 'vector', batchSize: CHUNKS_PER_READ }))
    for (const [fileId, fileRows] of Map.groupBy(rows, ([, file]) => file))
      yield [fileId, toVectorBlock(fileRows, dimension)]
}

/** Yields batches of the chunks that have vectors, in the order of their files and positions. */
export async function* readVectorChunks<Value>(
  db: Db,
  files: StoreFile[],
  { sql: column, params = [], batchSize }: ChunkQuery,
): AsyncGenerator<ChunkRow<Value>[]> {
  for (const batch of toChunks(files, FILES_PER_READ)) {
    const ids = batch.map(({ _id }) => _id)
    const sql = `select number, file, position, ${column} from knowledge_chunks
      where file in (${ids.map(() => '?').join(', ')}) and (file, position) > (?, ?) and vector is not null
      order by file, position limit ?`
    for (let [file, position, more] = ['', -1, true]; more; ) {
      const rows = (await db.query(sql, [...params, ...ids, file, position, batchSize])) as ChunkRow<Value>[]
      yield rows
      await db.yieldToOthers()
      more = rows.length === batchSize
      ;[, file, position] = rows.at(-1) ?? [0, file, position]
    }
  }
}

function toVectorBlock(rows: ChunkRow<Uint8Array>[], dimension: number): VectorBlock {
  const numbers = rows.map(([number]) => number)
  const vectors = new Float32Array(rows.length * dimension)
  for (const [n, [, , , bytes]] of rows.entries()) copyVector(bytes, vectors, n * dimension)
  return { numbers, vectors }
}
