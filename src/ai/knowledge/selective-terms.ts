import { BoundedMap } from '../../core/bounded-map'
import type { Db, Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { indexChunks, toStems, unindexChunks } from './full-text'
import type { StoreRow } from './stores'

const MAX_QUESTION_WORDS = 48
const MAX_TERMS_PER_SEARCH = 1_000 // words, over all stores
const LARGE_STORE_CHUNKS = 2_000 // chunks; smaller stores are searched for every word
const SAMPLE_CHUNKS = 300 // chunks
const COMMON_WORD_SHARE = 1 / 16 // of the sample
const MAX_CACHED_STORES = 1_000 // stores
const CHUNKS_BETWEEN_YIELDS = 50 // chunks, after which other work gets a turn

type CommonWords = { db: Db; chunks: number; words: Set<string> }
const commonWordsCache = new BoundedMap<string, CommonWords>(MAX_CACHED_STORES)

/**
 * Returns the words of a question to search each store for. Words that many chunks contain are left out, because they do
 * not distinguish chunks and ranking all matches would take long.
 */
export async function selectSearchTerms(
  db: Db,
  stores: StoreRow[],
  question: string,
): Promise<[store: number, words: string[]][]> {
  const words = [...new Set(toStems(question))].slice(
    0,
    Math.min(MAX_QUESTION_WORDS, MAX_TERMS_PER_SEARCH / stores.length),
  )
  const termsByStore: [number, string[]][] = []
  for (const store of stores) {
    const common = store.chunks < LARGE_STORE_CHUNKS ? undefined : await findCommonWords(db, store)
    const selective = common ? words.filter((word) => !common.has(word)) : words
    termsByStore.push([store.seq, selective.length ? selective : words])
  }
  return termsByStore
}

/** Finds common words in a sample of chunks. A new sample is taken when the store has doubled. */
async function findCommonWords(db: Db, { _id, chunks }: StoreRow): Promise<Set<string>> {
  const cachedWords = commonWordsCache.get(_id)
  const origin = db.origin ?? db
  if (cachedWords?.db === origin && chunks < cachedWords.chunks * 2) return cachedWords.words
  const rows = await db.query(
    `select text from knowledge_chunks where number in (
       select c.number from knowledge_files f join knowledge_chunks c on c.file = f._id
       where f.store = ? and f.ready = 1 order by c.number * 7919 % 10007, c.number limit ?)`,
    [_id, SAMPLE_CHUNKS],
  )
  const counts = new Map<string, number>()
  for (const [n, [text]] of rows.entries()) {
    for (const word of new Set(toStems(text as string))) counts.set(word, (counts.get(word) ?? 0) + 1)
    if (n % CHUNKS_BETWEEN_YIELDS === CHUNKS_BETWEEN_YIELDS - 1) await db.yieldToOthers()
  }
  const words = new Set(
    [...counts].filter(([, count]) => count > rows.length * COMMON_WORD_SHARE).map(([word]) => word),
  )
  commonWordsCache.set(_id, { db: origin, chunks, words })
  return words
}

const indexedStores = new WeakMap<Db, Set<string>>()

/** Indexes files whose words are missing: the full-text index is not moved along with a tenant. */
export async function ensureIndexed({ db, write }: Pick<Tenant, 'db' | 'write'>, stores: StoreRow[]) {
  const indexed = indexedStores.get(db) ?? new Set()
  indexedStores.set(db, indexed)
  for (const { _id, seq } of stores) {
    if (indexed.has(_id)) continue
    const rows = await db.query(
      `select f._id from knowledge_files f left join search_files s on s.file = f._id
       where f.store = ? and f.ready = 1 and s.file is null order by f._id`,
      [_id],
    )
    for (const [file] of rows as [string][])
      for (let nextPosition: number | undefined = -1; nextPosition !== undefined; ) {
        const afterPosition: number = nextPosition
        nextPosition = await write((tx) => indexNextChunks(tx, seq, file, afterPosition))
      }
    indexed.add(_id)
  }
}

const CHUNKS_PER_BATCH = 300

/** Indexes the next batch of chunks of a file. Returns the position of the last one, or undefined at the end. */
async function indexNextChunks(
  tx: Tx,
  store: number,
  file: string,
  afterPosition: number,
): Promise<number | undefined> {
  const sql =
    'select number, text, position from knowledge_chunks where file = ? and position > ? order by position limit ?'
  const rows = (await tx.query(sql, [file, afterPosition, CHUNKS_PER_BATCH])) as [
    number: number,
    text: string,
    position: number,
  ][]
  const numbers = rows.map(([number]) => number)
  await unindexChunks(tx, store, numbers)
  await indexChunks(
    tx,
    store,
    rows.map(([number, text]) => [number, text] as const),
  )
  if (rows.length === CHUNKS_PER_BATCH) return rows.at(-1)![2]
  // The file may have been removed meanwhile.
  await tx.query(
    'insert into search_files (file) select _id from knowledge_files where _id = ? on conflict (file) do nothing',
    [file],
  )
}
