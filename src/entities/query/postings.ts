import type { Model } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import { TERM_SEPARATOR } from '../search/tokenizer'
import { and, fragment } from '../store/sql-fragments'
import { readUntilChange } from './read-cache'
import { matchSql, SEARCH_WORDS_TABLE } from './scans'

const MAX_CACHED_ENTITIES_PER_TERM = 50_000
const MAX_CACHED_ENTITIES = 250_000 // of all terms of a blueprint
const CACHE_CHARACTERS = 1 << 20 // their size in memory, in characters of two bytes
/** Reading the entities of a term takes as long as a few searches. */
const READ_AFTER_SEARCHES = 3

/** How many searches asked for a term since the last change, and the entities that have it, latest first. */
type Term = { searches: number; entities?: Float64Array }
type Terms = {
  byText: Map<string, Term>
  entities: number
  /** Reads the entities of one term after the other, because each may have many. */
  reads: Promise<void>
}

/**
 * Returns the numbers of the entities that contain all words of a search, latest first, from cached postings. Terms are cached
 * once several searches use them before an entity changes. Returns undefined if a term is not cached, and for prefixes.
 */
export async function intersectPostings(
  db: Db,
  model: Model,
  search: string,
  { before = Number.POSITIVE_INFINITY, limit }: { before?: number; limit: number },
): Promise<number[] | undefined> {
  if (!search || search.includes('*')) return
  const readTerms = (db: Db) =>
    readUntilChange(
      db,
      model,
      'postings',
      async (): Promise<Terms> => ({ byText: new Map(), entities: 0, reads: Promise.resolve() }),
      () => CACHE_CHARACTERS,
    )
  const [terms, origin] = [await readTerms(db), db.origin ?? db]
  const isCurrent = async () => (await readTerms(origin)) === terms
  const found = search.split(TERM_SEPARATOR).map((word) => {
    const term = terms.byText.get(word) ?? { searches: 0 }
    if (terms.byText.size < MAX_TERMS) terms.byText.set(word, term)
    // In the background, because it would make this search costly.
    if (++term.searches === READ_AFTER_SEARCHES)
      terms.reads = terms.reads.then(() => readEntities(origin, word, terms, term, isCurrent)).catch(() => {})
    return term.entities
  })
  const lists = found.filter((entities) => entities !== undefined)
  return lists.length === found.length ? intersect(lists, before, limit) : undefined
}

/** Caches the entities of a term, in slices. A change of an entity meanwhile replaces `terms` and ends the read. */
async function readEntities(db: Db, word: string, terms: Terms, term: Term, isCurrent: () => Promise<boolean>) {
  const entities: number[] = []
  for (let before = Number.MAX_SAFE_INTEGER; await isCurrent(); ) {
    const { sql, params } = and([matchSql(word), fragment('w.rowid < ?', before)])
    const select = `select w.rowid from ${SEARCH_WORDS_TABLE} where ${sql} order by w.rowid desc limit ?`
    const rows = await db.query(select, [...params, ENTITIES_PER_READ])
    for (const [entity] of rows) entities.push(Number(entity))
    // Many entities contain such a term, so a scan of the latest finds enough.
    if (entities.length > MAX_CACHED_ENTITIES_PER_TERM) return
    if (terms.entities + entities.length > MAX_CACHED_ENTITIES) return
    if (rows.length < ENTITIES_PER_READ) {
      term.entities = Float64Array.from(entities)
      terms.entities += entities.length
      return
    }
    before = entities.at(-1)!
    await db.yieldToOthers()
  }
}

const ENTITIES_PER_READ = 2_000
const MAX_TERMS = 1_000 // of a blueprint whose searches are counted

/** Returns the highest numbers below `before` that all of the descending lists contain. */
function intersect(lists: Float64Array[], before: number, limit: number): number[] {
  const places = lists.map((list) => findBelow(list, before))
  const found: number[] = []
  for (let candidate = before; found.length < limit; ) {
    let agreeing = 0
    for (const [n, list] of lists.entries()) {
      while (places[n]! < list.length && list[places[n]!]! > candidate) places[n]!++
      if (places[n]! >= list.length) return found
      const next = list[places[n]!]!
      if (next === candidate) agreeing++
      else candidate = next
    }
    if (agreeing < lists.length) continue
    found.push(candidate)
    candidate -= 1
  }
  return found
}

/** Returns the index of the first number below `before` in a descending list. */
function findBelow(list: Float64Array, before: number): number {
  let [low, high] = [0, list.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (list[middle]! >= before) low = middle + 1
    else high = middle
  }
  return low
}
