import type { Model } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import { sortByRank, type WordMatch } from '../search/bm25'
import { toSearchedWords, toSearchTerms } from '../search/tokenizer'
import { createWordTest, findWithWords, getWordColumns, getWordLiteral, type WordRow } from '../search/word-filter'
import { and, fragment, noneOf, oneOf, type SqlFragment } from '../store/sql-fragments'
import { thresholds } from './cardinality'
import { findMatchingIds } from './id-set'
import { LiteralScan } from './literal-scan'
import type { Query } from './query-parser'
import { MAX_RANKED_SHOWN, type RankedCursor } from './ranked-search'
import { filterSql, isOfBlueprintSql, numberScan } from './scans'
import type { FindRequest, FindResult } from './select-sql'

const ENTITIES_PER_READ = 1_000
const MAX_RANGE_FACTOR = 4

const ENTITIES_PER_LOOKUP = 256 // for a page

/** Yields the entities that contain the words, in the given order and in bounded steps. `use` gets the document of each. */
async function* scanWithWords(
  db: Db,
  model: Model,
  words: string,
  ids: Iterable<number>,
  use?: (seq: number, document: string) => void,
): AsyncGenerator<number[]> {
  const [columns, test, [literal]] = [getWordColumns(model), createWordTest(model, words), getWordLiteral(model, words)]
  const literals = literal && new LiteralScan(literal)
  for (const chunk of chunksOf(ids, Math.min(ENTITIES_PER_READ, thresholds.rows))) {
    const near = await literals?.find(db, 'entities e', chunkSql(model, chunk))
    const { sql, params } = near ? oneOf('e.seq', near) : chunkSql(model, chunk)
    const rows =
      near?.length === 0 ? [] : await db.query(`select ${columns.join(', ')} from entities e where ${sql}`, params)
    const found = await findWithWords(db, model, test, rows as WordRow[], use)
    yield chunk.filter((id) => found.has(id))
    await db.yieldToOthers()
  }
}

/** Returns the SQL for the entities of a chunk, which may include others of the blueprint between them. */
function chunkSql(model: Model, chunk: number[]): SqlFragment {
  const [least, most] = [Math.min(chunk[0]!, chunk.at(-1)!), Math.max(chunk[0]!, chunk.at(-1)!)]
  // A range scan is faster than single lookups, unless most of its entities are of other blueprints.
  return most - least < MAX_RANGE_FACTOR * chunk.length
    ? and([fragment('e.seq >= ? and e.seq <= ?', least, most), isOfBlueprintSql(model)])
    : numberScan(model, chunk).where
}

function* chunksOf(ids: Iterable<number>, size: number) {
  let chunk: number[] = []
  for (const id of ids) {
    chunk.push(id)
    if (chunk.length < size) continue
    yield chunk
    chunk = []
  }
  if (chunk.length) yield chunk
}

/**
 * Returns the results of `findRanked` from the documents instead of the full-text index. With many matches, the latest come
 * first, and the scan stops when the page is full; otherwise the best come first.
 */
export async function findRankedUnindexed<Row extends unknown[]>(
  request: FindRequest,
  { shown, from = Number.POSITIVE_INFINITY }: RankedCursor = { shown: [] },
): Promise<FindResult<Row>> {
  const { db, model, query } = request
  const { words = '', skip, limit } = { ...query, limit: request.limit }
  const all = await findMatchingIds(db, model, { all: true }, { conditions: [] })
  const page = new Page(request, shown, skip, limit)
  let byTime = from < Number.POSITIVE_INFINITY || shown.length >= MAX_RANKED_SHOWN
  let matches: WordMatch[] = []
  const use = (seq: number, document: string) => {
    if (!byTime) matches.push({ seq, terms: toSearchTerms(model, JSON.parse(document)).split(' ') })
  }
  let waiting: number[] = []
  const ids = all.descending().filter((id) => id < from)
  for await (const found of scanWithWords(db, model, words, ids, use)) {
    waiting.push(...found)
    byTime ||= waiting.length >= thresholds.ranked
    if (!byTime) continue
    matches = []
    await page.add(waiting)
    if (page.isFull) break
    waiting = []
  }
  if (!byTime) await page.add(sortByRank(matches, toSearchedWords(words), all.size).map(({ seq }) => seq))
  const numbers = page.rows.map((row) => row.at(-1) as number)
  return {
    rows: page.rows as Row[],
    positionAfter: (count) =>
      byTime ? { shown, from: numbers[count - 1]! } : { shown: [...shown, ...numbers.slice(0, count)] },
  }
}

/** The rows of a page: the columns and numbers of entities that meet all other conditions. */
class Page {
  rows: unknown[][] = []

  constructor(
    private request: FindRequest,
    private shown: number[],
    private toSkip: number,
    private limit: number,
  ) {}

  get isFull() {
    return this.rows.length >= this.limit
  }

  /** Adds the entities that meet the conditions, in the given order, until the page is full. */
  async add(ids: number[]) {
    const { db, columns, model, rowScope, query } = this.request
    const selected = [...columns, 'e.seq'].join(', ')
    const without = this.shown.length ? [noneOf('e.seq', this.shown)] : []
    for (const chunk of chunksOf(ids, ENTITIES_PER_LOOKUP)) {
      if (this.isFull) return
      const { sql, params } = and([filterSql(numberScan(model, chunk), rowScope, query.conditions), ...without])
      const rows = await db.query(`select ${selected} from entities e where ${sql}`, params)
      const byId = new Map(rows.map((row) => [Number(row.at(-1)), row]))
      for (const id of chunk) {
        const row = byId.get(id)
        if (!row || this.isFull || this.toSkip-- > 0) continue
        this.rows.push(row)
      }
    }
  }
}

/** Returns the numbers of the entities that contain the words of a query, from their documents. */
export async function findIdsWithWords(db: Db, model: Model, { words = '' }: Query): Promise<number[]> {
  const ids: number[] = []
  const all = await findMatchingIds(db, model, { all: true }, { conditions: [] })
  for await (const some of scanWithWords(db, model, words, all)) ids.push(...some)
  return ids
}
