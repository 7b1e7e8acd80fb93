import type { Db } from '../../../storage/port'
import { place } from '../embedding'
import type { StoreRow } from '../stores'

/** The vectors of some chunks of a file, one after the other. */
export type Slab = { numbers: number[]; vectors: Float32Array }

type File = { _id: string; chunks: number }
/** What of a store is in memory, by file. */
type Kept = { db: Db; version: number; bytes: number; files: Promise<Map<string, Slab[]>> }

const MOST = 256 << 20 // bytes, of all tenants
const MOST_OF_TENANT = 128 << 20
const STORES = 10_000
const READ = 1_000 // chunks that are read at once
const FILES = 400 // and of how many files

/** Stores that were asked lately, the least recently used first, by their ids, which are unique among tenants. */
const shelf = new Map<string, Kept>()

/**
 * The vectors of a store, from memory where they have room there. A file never changes, so what was read of it stays right;
 * which files there are is asked again when the store is of another version, whichever process made it so.
 */
export async function* slabsOf(db: Db, store: StoreRow): AsyncGenerator<Slab> {
  const bytes = store.chunks * store.dimension! * Float32Array.BYTES_PER_ELEMENT
  if (bytes > MOST_OF_TENANT) {
    for await (const [, slab] of read(db, await filesOf(db, store), store.dimension!)) yield slab
    return
  }
  for (const slabs of (await kept(db, store, bytes)).values()) yield* slabs
}

function kept(db: Db, store: StoreRow, bytes: number) {
  const before = shelf.get(store._id)
  const same = before?.db === db ? before : undefined
  const files = same?.version === store.version ? same.files : load(db, store, same?.files)
  shelf.delete(store._id)
  shelf.set(store._id, { db, version: store.version, bytes, files })
  files.catch(() => shelf.get(store._id)?.files === files && shelf.delete(store._id))
  makeRoom(db)
  return files
}

/** What was not asked for the longest time goes. */
function makeRoom(db: Db) {
  let [all, own] = [0, 0]
  for (const one of shelf.values()) {
    all += one.bytes
    if (one.db === db) own += one.bytes
  }
  for (const [key, one] of shelf) {
    const full = all > MOST || shelf.size > STORES
    if (!full && own <= MOST_OF_TENANT) return
    if (!full && one.db !== db) continue
    shelf.delete(key)
    all -= one.bytes
    if (one.db === db) own -= one.bytes
  }
}

/** What was read before is not read again. */
async function load(db: Db, store: StoreRow, before?: Promise<Map<string, Slab[]>>) {
  const [files, known] = [await filesOf(db, store), await before?.catch(() => undefined)]
  const all = new Map<string, Slab[]>()
  for (const { _id } of files) all.set(_id, known?.get(_id) ?? [])
  const missing = files.filter(({ _id }) => !known?.has(_id))
  for await (const [file, slab] of read(db, missing, store.dimension!)) all.get(file)!.push(slab)
  return all
}

/** The files of a store that are whole, in the order of their ids. */
export const filesOf = async (db: Db, { _id }: StoreRow): Promise<File[]> => {
  const rows = await db.ask('select _id, chunks from knowledge_files where store = ? and ready = 1 order by _id', [_id])
  return rows.map(([_id, chunks]) => ({ _id, chunks }) as File)
}

type Row<Told> = [number: number, file: string, position: number, told: Told]
/** What is asked of each chunk, in SQL, and how many are asked at once. */
type Asked = { sql: string; params?: unknown[]; atOnce: number }

async function* read(db: Db, files: File[], dimension: number): AsyncGenerator<[file: string, Slab]> {
  for await (const rows of chunksOf<Uint8Array>(db, files, { sql: 'vector', atOnce: READ }))
    for (const [of, some] of Map.groupBy(rows, ([, file]) => file)) yield [of, slabOf(some, dimension)]
}

/** The chunks of files that have vectors, in the order of files and their chunks, so many at a time. */
export async function* chunksOf<Told>(
  db: Db,
  files: File[],
  { sql: told, params = [], atOnce }: Asked,
): AsyncGenerator<Row<Told>[]> {
  for (let at = 0; at < files.length; at += FILES) {
    const ids = files.slice(at, at + FILES).map(({ _id }) => _id)
    const sql = `select number, file, position, ${told} from knowledge_chunks
      where file in (${ids.map(() => '?').join(', ')}) and (file, position) > (?, ?) and vector is not null
      order by file, position limit ?`
    for (let [file, position, more] = ['', -1, true]; more; ) {
      const rows = (await db.ask(sql, [...params, ...ids, file, position, atOnce])) as Row<Told>[]
      yield rows
      more = rows.length === atOnce
      ;[, file, position] = rows.at(-1) ?? [0, file, position]
    }
  }
}

function slabOf(rows: Row<Uint8Array>[], dimension: number): Slab {
  const numbers = rows.map(([number]) => number)
  const vectors = new Float32Array(rows.length * dimension)
  for (const [n, [, , , bytes]] of rows.entries()) place(bytes, vectors, n * dimension)
  return { numbers, vectors }
}
