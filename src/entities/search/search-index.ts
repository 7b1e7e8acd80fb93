import { getModel } from '../../blueprints/blueprints'
import { restartBackfill } from '../../blueprints/cutover'
import type { Model } from '../../blueprints/model'
import { readLastEntityNumber } from '../../blueprints/number-sequence'
import type { Db, Tx } from '../../storage/port'
import { writeInBackground } from '../../tenancy/background-write'
import { cached } from '../../tenancy/cache'
import { SliceSize } from '../../tenancy/slice-size'
import type { Tenant } from '../../tenancy/tenants'
import { createBlueprintTask, createReadsWait, INDEXING_DELAY_MS } from '../blueprint-task'
import { STATE_SQL } from '../indexing/index-rows'
import type { Query } from '../query/query-parser'
import { fragment, oneOf, toChunks } from '../store/sql-fragments'
import { replaceTerms } from './search-terms'
import { toSearchTerms } from './tokenizer'
import { getWordColumns, readDocuments, type WordRow } from './word-filter'
import { WordReader } from './word-reads'

const [MIN_ENTITIES_PER_WRITE, MAX_ENTITIES_PER_WRITE] = [20, 500]
const MIN_ENTITIES_PER_REMOTE_WRITE = 250 // fewer entities take as long, because of the round trips

/**
 * Returns a query whose words can be looked for now. The first search of a blueprint has the index of its words built in
 * the background, so that blueprints that are never searched cost nothing; until it is ready, the documents are read.
 */
export async function prepareSearch(tenant: Tenant, model: Model, query: Query): Promise<Query> {
  const { search, ...others } = query
  if (!search || (await isSearchIndexReady(tenant, model))) return query
  // A reader thread cannot write. The main thread tries each read first.
  if (Bun.isMainThread) resumeWordIndexing(tenant, model.key)
  return { ...others, words: search }
}

const isSearchIndexReady = (tenant: Tenant, model: Model) =>
  cached(tenant, 'blueprints', `words ${model._id}`, () => readReadiness(tenant, model))

/** Builds the full-text index of a blueprint in the background. After an interruption, the next search resumes it. */
const resumeWordIndexing = createBlueprintTask(
  'words',
  'INDEXING_INTERRUPTED',
  async (tenant, leased, key) => buildIndex(leased, await getModel(tenant, key), leased.signal),
  { delayMs: INDEXING_DELAY_MS },
)

/** Builds the full-text index of a blueprint, unless it is ready. */
export async function ensureSearchIndex(tenant: Tenant, model: Model): Promise<void> {
  if (!(await isSearchIndexReady(tenant, model))) await buildIndex(tenant, model)
}

async function readReadiness({ db }: Tenant, { key }: Model) {
  const [row] = await db.query('select 1 from search_progress where blueprint = ? and done >= upto', [key])
  return row ? true : undefined
}

/**
 * Indexes all entities, in the order of their numbers. Whoever writes one that is indexed indexes its words, and leaves the
 * words of the others, such as new ones, to be indexed here.
 */
async function buildIndex(tenant: Tenant, model: Model, signal?: AbortSignal) {
  await tenant.write(async (tx) => {
    const inserted = await tx.query(
      `insert into search_progress (blueprint, done, upto)
       select key, 0, cast(? as bigint) from blueprints where _id = ?
       on conflict ("blueprint") do nothing returning upto`,
      [await readLastEntityNumber(tx, model.code), model._id],
    )
    // Entities that were already prepared for an alteration have no words yet.
    if (inserted.length) await restartBackfill(tx, model.key)
  })
  const reader = new WordReader(tenant, model, signal)
  const min = tenant.place?.cluster ? MIN_ENTITIES_PER_REMOTE_WRITE : MIN_ENTITIES_PER_WRITE
  const size = new SliceSize(min, MAX_ENTITIES_PER_WRITE)
  const waitForReads = createReadsWait(tenant.tenant, { signal })
  for (let hasMore = true; hasMore; ) {
    signal?.throwIfAborted()
    await waitForReads()
    hasMore = await indexNextEntities(tenant, model, reader, size)
  }
}

/**
 * Indexes the next entities, from wherever any process left off. They are read and split into words first, without holding
 * the writer. Returns whether there may be more.
 */
async function indexNextEntities(tenant: Tenant, model: Model, reader: WordReader, size: SliceSize): Promise<boolean> {
  const start = await readStart(tenant.db, model)
  if (start === undefined) return false
  const { words, numbers, isEnd } = await reader.readAfter(start)
  const known = new Map(words.map(([seq, state, terms]) => [seq, { state, terms }]))
  for (let [from, at] = [start, 0]; ; ) {
    at = Math.min(at + size.rows, numbers.length)
    const slice = { from, to: numbers[at - 1] ?? from, isLast: isEnd && at === numbers.length }
    const outcome = await writeInBackground(
      tenant,
      (tx) => indexSlice(tx, model, slice, known),
      (ms) => size.record(size.rows, ms),
    )
    if (outcome === 'ready') return false
    // Another process may have continued the build, or the blueprint may have changed.
    if (outcome === 'elsewhere' || at === numbers.length) return true
    from = slice.to
  }
}

/** Returns the number up to which entities are indexed, or undefined when there is nothing to index. */
async function readStart(db: Pick<Db, 'query'>, model: Model): Promise<number | undefined> {
  const [state] = (await db.query(
    'select s.done, s.upto, b.form from search_progress s join blueprints b on b.key = s.blueprint where b._id = ?',
    [model._id],
  )) as number[][]
  // A request with another form than the one in force notices it and is repeated.
  return !state || Number(state[0]) >= Number(state[1]) || state[2] !== model.form ? undefined : Number(state[0])
}

type Slice = { from: number; to: number; isLast: boolean }

/** Indexes the entities with these numbers. Those that changed since they were read are read again. */
async function indexSlice(
  tx: Tx,
  model: Model,
  { from, to, isLast }: Slice,
  words: Map<number, { state: string; terms: string }>,
): Promise<'more' | 'ready' | 'elsewhere'> {
  if ((await readStart(tx, model)) !== from) return 'elsewhere'
  // `|| ''` keeps SQLite from scanning the blueprint's index for each slice.
  const range = fragment("e.seq > ? and e.seq <= ? and e.blueprint || '' = ?", from, to, model.code)
  const states = await tx.query(`select e.seq, ${STATE_SQL} from entities e where ${range.sql}`, range.params)
  const [known, outdated]: [[number, string][], number[]] = [[], []]
  for (const [number, state] of states) {
    const seq = Number(number)
    const read = words.get(seq)
    if (read?.state === state) known.push([seq, read!.terms])
    else outdated.push(seq)
  }
  for (const chunk of toChunks(outdated)) {
    const { sql, params } = oneOf('e.seq', chunk)
    const rows = await tx.query(`select ${getWordColumns(model).join(', ')} from entities e where ${sql}`, params)
    await readDocuments(tx, model, rows as WordRow[], (seq, document) =>
      known.push([seq, toSearchTerms(model, JSON.parse(document))]),
    )
  }
  replaceTerms(tx, known)
  const isEnd = isLast && !(await tx.query('select 1 from entities where seq > ? limit 1', [to])).length
  // During the build, `upto` stays above all indexed numbers.
  await tx.query('update search_progress set done = ?, upto = ? where blueprint = ?', [
    to,
    isEnd ? to : to + 1,
    model.key,
  ])
  return isEnd ? 'ready' : 'more'
}
