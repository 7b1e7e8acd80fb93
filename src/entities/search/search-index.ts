import { restartBackfill } from '../../blueprints/cutover'
import type { Model } from '../../blueprints/model'
import { Busy } from '../../storage/errors'
import type { DeferredWrite, Tx } from '../../storage/port'
import { cached } from '../../tenancy/cache'
import type { Tenant } from '../../tenancy/tenants'
import { extractDocumentJson, shownColumnSql } from '../store/serializer'
import { oneOf, takeWithinSize } from '../store/sql-fragments'
import { toSearchTerms } from './tokenizer'

const ENTITIES_PER_WRITE = 300 // entities looked at in one write
const MAX_BYTES_PER_WRITE = 1 << 18 // bytes read for their words, unless a single one is larger
const INDEX_WAIT_MS = 5_000 // ms that a search waits for the words of all entities

/**
 * Makes the words of a blueprint's entities ready to be searched. They are kept from its first search on, so that those
 * who never search pay nothing. @throws 503 when there are so many entities that it takes long; it goes on meanwhile
 */
export async function ensureSearchIndex(tenant: Tenant, model: Model): Promise<void> {
  const ready = cached(tenant, 'blueprints', `words ${model._id}`, () => isIndexReady(tenant, model))
  if (!(ready instanceof Promise) || (await ready)) return
  const running = runningBuilds.get(model) ?? buildIndex(tenant, model).finally(() => runningBuilds.delete(model))
  runningBuilds.set(model, running)
  running.catch(() => {}) // who waits hears of it
  const timeout = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => timeout.reject(new Busy('The search index of this blueprint is being built.')),
    INDEX_WAIT_MS,
  )
  await Promise.race([running, timeout.promise]).finally(() => clearTimeout(timer))
}

const runningBuilds = new WeakMap<Model, Promise<void>>()

async function isIndexReady({ db }: Tenant, { key }: Model) {
  const [row] = await db.query('select 1 from search_progress where blueprint = ? and done >= upto', [key])
  return row ? true : undefined
}

/** Those that come later bring their words themselves. */
async function buildIndex({ write }: Tenant, model: Model) {
  await write(async (tx) => {
    const inserted = await tx.query(
      `insert into search_progress (blueprint, done, upto)
       select key, 0, coalesce((select max(seq) from entities where blueprint = ?), 0) from blueprints where _id = ?
       on conflict ("blueprint") do nothing returning upto`,
      [model.key, model._id],
    )
    // What is prepared for a change has no words yet.
    if (inserted.length) await restartBackfill(tx, model.key)
  })
  for (let hasMore = true; hasMore; ) hasMore = await write((tx) => indexNextEntities(tx, model))
}

/** The words of some more entities, whoever made those before. */
async function indexNextEntities(tx: Tx, model: Model): Promise<boolean> {
  const [state] = (await tx.query(
    'select s.done, s.upto, b.form from search_progress s join blueprints b on b.key = s.blueprint where b._id = ?',
    [model._id],
  )) as number[][]
  // Whoever asks by another form than the one in force will find out, and ask again.
  if (!state || state[0]! >= state[1]! || state[2] !== model.form) return false
  // Of all blueprints: SQLite would sort all of one anew for each slice.
  const next =
    'select seq, blueprint, octet_length(shown) from entities where seq > ? and seq <= ? order by seq limit ?'
  const rows = (await tx.query(next, [state[0], state[1], ENTITIES_PER_WRITE])) as [number, string, number][]
  const batch = takeWithinSize(rows, MAX_BYTES_PER_WRITE, ([, blueprint, size]) => (blueprint === model.key ? size : 0))
  const ownIds = batch.filter(([, blueprint]) => blueprint === model.key).map(([seq]) => seq)
  if (ownIds.length) await indexEntities(tx, model, ownIds)
  const done = rows.length === ENTITIES_PER_WRITE || batch.length < rows.length ? batch.at(-1)![0] : state[1]
  await tx.query('update search_progress set done = ? where blueprint = ?', [done, model.key])
  return true
}

async function indexEntities(tx: Tx, model: Model, entities: number[]) {
  const { sql, params } = oneOf('seq', entities)
  const rows = (await tx.query(`select seq, ${shownColumnSql(model, '')} from entities where ${sql}`, params)) as [
    number,
    string,
  ][]
  const terms = rows.map(([seq, shown]) => [seq, toSearchTerms(model, JSON.parse(extractDocumentJson(shown)))] as const)
  replaceTerms(tx, terms)
}

/** Whether the words of a blueprint's entities are kept, as a part of a statement; its key is the value. */
export const IS_SEARCHED = '(select 1 from search_progress w where w.blueprint = ?)'

/** Replaces the words of entities, at the end of the transaction. */
export function replaceTerms(tx: Tx, entities: (readonly [seq: number, terms: string])[]) {
  for (const [seq, terms] of entities) tx.defer(writeTerms, seq, { terms, fresh: false })
}

/** The words of entities that have none yet. */
export function addTerms(tx: Tx, entities: (readonly [seq: number, terms: string])[]) {
  for (const [seq, terms] of entities) tx.defer(writeTerms, seq, { terms, fresh: true })
}

/** At once, for the number of an entity may be the next one's. */
export function removeTerms(tx: Tx, entities: number[]) {
  for (const seq of entities) tx.defer(writeTerms, seq, undefined)
  return tx.executeMany(
    DELETE_TERMS,
    entities.map((seq) => [seq]),
  )
}

const DELETE_TERMS = 'delete from search_words where rowid = ?'

type TermsEntry = { terms: string; fresh: boolean }

/** The words of a transaction all together: SQLite would write them to its pages at the end of each savepoint. */
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
