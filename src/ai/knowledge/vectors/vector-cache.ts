import { toChunks } from '../../../core/chunks'
import type { Db } from '../../../storage/port'
import { copyVector } from '../embeddings'
import type { StoreRow } from '../stores'

/** The vectors of some chunks of a file, one after the other. */
export type VectorBlock = { numbers: number[]; vectors: Float32Array }

type StoreFile = { _id: string; chunks: number }
/** What of a store is in memory, by file. */
type CachedStore = { db: Db; version: number; bytes: number; files: Promise<Map<string, VectorBlock[]>> }

const MAX_CACHE_BYTES = 256 << 20 // bytes, of all tenants
const MAX_CACHE_BYTES_PER_TENANT = 128 << 20
const MAX_CACHED_STORES = 10_000
const CHUNKS_PER_READ = 1_000 // chunks that are read at once
const FILES_PER_READ = 400 // and of how many files

/** Stores that were asked lately, the least recently used first, by their ids, which are unique among tenants. */
const storeCache = new Map<string, CachedStore>()

/**
 * The vectors of a store, from memory where they have room there. A file never changes, so what was read of it stays right;
 * which files there are is asked again when the store is of another version, whichever process made it so.
 */
export async function* readVectorBlocks(db: Db, store: StoreRow): AsyncGenerator<VectorBlock> {
  const bytes = store.chunks * store.dimension! * Float32Array.BYTES_PER_ELEMENT
  if (bytes > MAX_CACHE_BYTES_PER_TENANT) {
    for await (const [, slab] of readBlocks(db, await listReadyFiles(db, store), store.dimension!)) yield slab
    return
  }
  for (const slabs of (await getCachedFiles(db, store, bytes)).values()) yield* slabs
}

function getCachedFiles(db: Db, store: StoreRow, bytes: number) {
  const entry = storeCache.get(store._id)
  const entryOfDb = entry?.db === db ? entry : undefined
  const files = entryOfDb?.version === store.version ? entryOfDb.files : loadFiles(db, store, entryOfDb?.files)
  storeCache.delete(store._id)
  storeCache.set(store._id, { db, version: store.version, bytes, files })
  files.catch(() => storeCache.get(store._id)?.files === files && storeCache.delete(store._id))
  evictOldest(db)
  return files
}

/** What was not asked for the longest time goes. */
function evictOldest(db: Db) {
  let [totalBytes, tenantBytes] = [0, 0]
  for (const one of storeCache.values()) {
    totalBytes += one.bytes
    if (one.db === db) tenantBytes += one.bytes
  }
  for (const [key, one] of storeCache) {
    const isFull = totalBytes > MAX_CACHE_BYTES || storeCache.size > MAX_CACHED_STORES
    if (!isFull && tenantBytes <= MAX_CACHE_BYTES_PER_TENANT) return
    if (!isFull && one.db !== db) continue
    storeCache.delete(key)
    totalBytes -= one.bytes
    if (one.db === db) tenantBytes -= one.bytes
  }
}

/** What was read before is not read again. */
async function loadFiles(db: Db, store: StoreRow, before?: Promise<Map<string, VectorBlock[]>>) {
  const [files, loaded] = [await listReadyFiles(db, store), await before?.catch(() => undefined)]
  const blocksByFile = new Map<string, VectorBlock[]>()
  for (const { _id } of files) blocksByFile.set(_id, loaded?.get(_id) ?? [])
  const unloaded = files.filter(({ _id }) => !loaded?.has(_id))
  for await (const [file, slab] of readBlocks(db, unloaded, store.dimension!)) blocksByFile.get(file)!.push(slab)
  return blocksByFile
}

/** The files of a store that are whole, in the order of their ids. */
export const listReadyFiles = async (db: Db, { _id }: StoreRow): Promise<StoreFile[]> => {
  const rows = await db.query('select _id, chunks from knowledge_files where store = ? and ready = 1 order by _id', [
    _id,
  ])
  return rows.map(([_id, chunks]) => ({ _id, chunks }) as StoreFile)
}

type ChunkRow<Told> = [number: number, file: string, position: number, told: Told]
/** What is asked of each chunk, in SQL, and how many are asked at once. */
type ChunkQuery = { sql: string; params?: unknown[]; batchSize: number }

async function* readBlocks(db: Db, files: StoreFile[], dimension: number): AsyncGenerator<[file: string, VectorBlock]> {
  for await (const rows of readVectorChunks<Uint8Array>(db, files, { sql: 'vector', batchSize: CHUNKS_PER_READ }))
    for (const [fileId, fileRows] of Map.groupBy(rows, ([, file]) => file))
      yield [fileId, toVectorBlock(fileRows, dimension)]
}

/** The chunks of files that have vectors, in the order of files and their chunks, so many at a time. */
export async function* readVectorChunks<Told>(
  db: Db,
  files: StoreFile[],
  { sql: column, params = [], batchSize }: ChunkQuery,
): AsyncGenerator<ChunkRow<Told>[]> {
  for (const batch of toChunks(files, FILES_PER_READ)) {
    const ids = batch.map(({ _id }) => _id)
    const sql = `select number, file, position, ${column} from knowledge_chunks
      where file in (${ids.map(() => '?').join(', ')}) and (file, position) > (?, ?) and vector is not null
      order by file, position limit ?`
    for (let [file, position, more] = ['', -1, true]; more; ) {
      const rows = (await db.query(sql, [...params, ...ids, file, position, batchSize])) as ChunkRow<Told>[]
      yield rows
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
