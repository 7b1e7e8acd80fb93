import { getModel } from '../../blueprints/blueprints'
import { restartBackfill } from '../../blueprints/cutover'
import type { Model } from '../../blueprints/model'
import { readLastEntityNumber } from '../../blueprints/number-sequence'
import type { DeferredWrite, Tx } from '../../storage/port'
import { writeInBackground } from '../../tenancy/background-write'
import { cached } from '../../tenancy/cache'
import type { Tenant } from '../../tenancy/tenants'
import { createBlueprintTask, INDEXING_DELAY_MS } from '../blueprint-task'
import type { Query } from '../query/query-parser'
import { takeWithinSize } from '../store/sql-fragments'
import { toSearchTerms } from './tokenizer'
import { getWordColumns, readDocuments, type WordRow } from './word-filter'

const ENTITIES_PER_WRITE = 100 // entities read in one write
const MAX_BYTES_PER_WRITE = 1 << 18 // bytes of entities read in one write, unless a single one is larger

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

/** Builds the index of a blueprint's words in the background. After an interruption, the next search goes on. */
const resumeWordIndexing = createBlueprintTask(
  'words',
  'INDEXING_INTERRUPTED',
  async (tenant, leased, key) => buildIndex(leased, await getModel(tenant, key), leased.signal),
  { delayMs: INDEXING_DELAY_MS },
)

/** Builds the index of a blueprint's words, unless it is ready. */
export async function ensureSearchIndex(tenant: Tenant, model: Model): Promise<void> {
  if (!(await isSearchIndexReady(tenant, model))) await buildIndex(tenant, model)
}

async function readReadiness({ db }: Tenant, { key }: Model) {
  const [row] = await db.query('select 1 from search_progress where blueprint = ? and done >= upto', [key])
  return row ? true : undefined
}

/** Indexes the entities that exist now; later writes index theirs themselves. */
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
  for (let hasMore = true; hasMore; ) {
    signal?.throwIfAborted()
    hasMore = await writeInBackground(tenant, (tx) => indexNextEntities(tx, model))
  }
}

/** Indexes the next slice of entities, from wherever any process left off. Returns whether there may be more. */
async function indexNextEntities(tx: Tx, model: Model): Promise<boolean> {
  const [state] = (await tx.query(
    'select s.done, s.upto, b.form from search_progress s join blueprints b on b.key = s.blueprint where b._id = ?',
    [model._id],
  )) as number[][]
  // A request with another form than the one in force notices it and is repeated.
  if (!state || state[0]! >= state[1]! || state[2] !== model.form) return false
  const [done, upto] = state as [number, number]
  // Entities of all blueprints, because SQLite would sort all entities of one blueprint again for each slice.
  const next = `select e.seq, e.blueprint, ${getWordColumns(model).slice(1).join(', ')} from entities e
    where e.seq > ? and e.seq <= ? order by e.seq limit ?`
  const rows = (await tx.query(next, [done, upto, ENTITIES_PER_WRITE])) as EntityRow[]
  const batch = takeWithinSize(rows, MAX_BYTES_PER_WRITE, ([, blueprint, size]) =>
    blueprint === model.code ? Number(size) : 0,
  )
  const own = batch.flatMap(([seq, blueprint, size, document]): WordRow[] =>
    blueprint === model.code ? [[seq, size, document]] : [],
  )
  const terms: [number, string][] = []
  await readDocuments(tx, model, own, (seq, document) => terms.push([seq, toSearchTerms(model, JSON.parse(document))]))
  replaceTerms(tx, terms)
  const isEnd = rows.length < ENTITIES_PER_WRITE && batch.length === rows.length
  await tx.query('update search_progress set done = ? where blueprint = ?', [
    isEnd ? upto : batch.at(-1)![0],
    model.key,
  ])
  return true
}

type EntityRow = [seq: number, blueprint: string, size: number, document: string | null]

/** SQL for whether a blueprint has a search index; its parameter is the blueprint's key. */
export const IS_SEARCHED = '(select 1 from search_progress w where w.blueprint = ?)'

/** Replaces the words of entities, at the end of the transaction. */
export function replaceTerms(tx: Tx, entities: (readonly [seq: number, terms: string])[]) {
  for (const [seq, terms] of entities) tx.defer(writeTerms, seq, { terms, fresh: false })
}

/** Adds the words of entities that have none yet, at the end of the transaction. */
export function addTerms(tx: Tx, entities: (readonly [seq: number, terms: string])[]) {
  for (const [seq, terms] of entities) tx.defer(writeTerms, seq, { terms, fresh: true })
}

/** Removes the words of entities at once, because a new entity may reuse the number. */
export function removeTerms(tx: Tx, entities: number[]) {
  for (const seq of entities) tx.defer(writeTerms, seq, undefined)
  return tx.executeMany(
    DELETE_TERMS,
    entities.map((seq) => [seq]),
  )
}

const DELETE_TERMS = 'delete from search_words where rowid = ?'

type TermsEntry = { terms: string; fresh: boolean }

/**
 * Writes all words of a transaction together, because SQLite flushes them to its pages at the end of each savepoint.
 */
const writeTerms: DeferredWrite<number, TermsEntry | undefined> = async ({ executeMany }, entries) => {
  const added = entries.flatMap(([seq, terms]) => (terms ? [{ seq, ...terms }] : []))
  await executeMany(
    DELETE_TERMS,
    added.filter(({ fresh }) => !fresh).map(({ seq }) => [seq]),
  )
  await executeMany(
    'insert into search_words (rowid, words) values (?, ?)',
    added.map(({ seq, terms }) => [seq, terms]),
  )
}
