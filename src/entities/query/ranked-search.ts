import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import type { Db } from '../../storage/port'
import { TERM_SEPARATOR } from '../search/tokenizer'
import { and, fragment, noneOf, type SqlFragment } from '../store/sql-fragments'
import { estimateRows, getKnownRows, rememberRows, thresholds } from './cardinality'
import { keepKnownTerms } from './known-terms'
import { intersectPostings } from './postings'
import type { Query } from './query-parser'
import { splitIntoRanges } from './ranges'
import {
  entityHasWordsSql,
  filterSql,
  fullScan,
  matchSql,
  numberScan,
  rankedScan,
  type Scan,
  SEARCH_WORDS_TABLE,
} from './scans'
import type { FindResult } from './select-sql'

/** The cursor of a ranked search. Entities that were shown are excluded from later pages. */
export type RankedCursor = { shown: number[]; from?: number }

/** The number of results that are ranked. The cursor has to list them all, so later results come by time. */
export const MAX_RANKED_SHOWN = 300
/** How long a number of matches is cached (ms). It only decides how they are read and sorted. */
const MATCHES_TTL_MS = 60_000
/** This many of the latest matches are read first, and more when too few of them meet the conditions. */
const FIRST_RANGE_ROWS = 200 // rows of words
const MAX_TRIED_MATCHES = 1_000 // from cached postings

/** Returns the best matches first, or the latest first when too many entities contain the words. */
export async function findRanked<Row extends unknown[]>(
  request: RankedRequest,
  { shown, from }: RankedCursor = { shown: [] },
): Promise<FindResult<Row>> {
  const { db, model, rowScope, query, limit } = request
  const { skip } = query
  const search = await keepKnownTerms(db, model, query.search ?? '')
  let byTime = from !== undefined || shown.length >= MAX_RANKED_SHOWN
  const latest = db.wordIndex === 'gin' ? await sortLatest(request, search, { shown, from }, byTime) : undefined
  byTime ||= (latest?.matches ?? (await estimateMatches(db, search))) >= thresholds.ranked
  const scan = byTime ? rankedScan(model, search) : await rankByRareWords(db, model, search)
  const where = [filterSql(scan, rowScope, query.conditions)]
  if (shown.length) where.push(noneOf('e.seq', shown))
  const before = from === undefined ? [] : [fragment('w.rowid < ?', from)]
  let rows: unknown[][]
  if (!byTime) rows = await selectRows(request, scan, where, 'w.rank, e.seq desc', { limit, skip })
  else
    rows =
      latest?.rows ??
      (await findInPostings(request, search, { shown, from })) ??
      (await findLatest(request, scan, [...where, ...before], and([matchSql(search), ...before])))
  const numbers = rows.map((row) => row.at(-1) as number)
  return {
    rows: rows as Row[],
    positionAfter: (count) =>
      byTime ? { shown, from: numbers[count - 1]! } : { shown: [...shown, ...numbers.slice(0, count)] },
  }
}

/** Returns the columns and the numbers of the entities of a scan. */
function selectRows(
  { db, columns }: RankedRequest,
  { from, fromParams = [] }: Scan,
  where: SqlFragment[],
  by: string,
  { limit, skip }: { limit: number; skip: number },
) {
  const { sql, params } = and(where)
  const columnList = [...columns, 'e.seq'].join(', ')
  return db.query(`select ${columnList} from ${from} where ${sql} order by ${by} limit ? offset ?`, [
    ...fromParams,
    ...params,
    limit,
    skip,
  ])
}

const estimateMatches = (db: Db, search: string) =>
  estimateRows(db, SEARCH_WORDS_TABLE, matchSql(search), thresholds.ranked)

/**
 * Returns the number of matches, and the page of the latest ones by sorting all of them; no page when there are too many, or so
 * few that `findRanked` ranks them. Returns undefined when the number needs a separate count.
 */
async function sortLatest(
  request: RankedRequest,
  search: string,
  { shown, from = Number.MAX_SAFE_INTEGER }: RankedCursor,
  isLater: boolean,
): Promise<{ matches: number; rows?: unknown[][] } | undefined> {
  const { db, columns, model, rowScope, query, limit } = request
  const { ranked, sortedMatches } = thresholds
  const words = matchSql(search)
  const known = getKnownRows(db, SEARCH_WORDS_TABLE, words, sortedMatches)
  if (known !== undefined && (known >= sortedMatches || (known < ranked && !isLater))) return { matches: known }
  // `+ 0` keeps PostgreSQL from scanning the index of numbers instead of the full-text index.
  const { sql, params } = and([words, fragment('w.rowid + 0 < ?', from)])
  const matching = `select w.rowid + 0 as seq from ${SEARCH_WORDS_TABLE} where ${sql} limit ${sortedMatches}`
  const sorted = `select m.seq, count(*) over () as matches from (${matching}) as m order by m.seq desc`
  const scan = { ...fullScan(model), from: `(${sorted}) as n join entities e on e.seq = n.seq`, fromParams: params }
  const where = [filterSql(scan, rowScope, query.conditions), ...(shown.length ? [noneOf('e.seq', shown)] : [])]
  const counted = { ...request, columns: [...columns, 'n.matches'] }
  const rows = await selectRows(counted, scan, where, 'n.seq desc', { limit, skip: query.skip })
  if (!rows.length) return
  const matches = Number(rows[0]![columns.length])
  if (!isLater) rememberRows(db, SEARCH_WORDS_TABLE, words, sortedMatches, matches, MATCHES_TTL_MS)
  if (matches >= sortedMatches || (matches < ranked && !isLater)) return { matches }
  return { matches, rows: rows.map((row) => row.toSpliced(columns.length, 1)) }
}

/** Returns the page of the latest matches from cached postings; undefined when these do not suffice. */
async function findInPostings(request: RankedRequest, search: string, { shown, from }: RankedCursor) {
  const { db, columns, model, rowScope, query, limit } = request
  const isFiltered = query.conditions.length > 0 || !rowScope.all || shown.length > 0
  const tried = isFiltered ? MAX_TRIED_MATCHES : limit + query.skip
  if (db.wordIndex === 'gin' || tried > MAX_TRIED_MATCHES) return
  const entities = await intersectPostings(db, model, search, { before: from, limit: tried })
  if (!entities?.length) return entities && []
  // The number of a field belongs to one blueprint, and terms are removed together with their entities.
  if (!isFiltered && columns.every((column) => column === 'e.seq'))
    return entities.slice(query.skip).map((entity) => [...columns.map(() => entity), entity])
  const scan = numberScan(model, entities)
  const where = [filterSql(scan, rowScope, query.conditions), ...(shown.length ? [noneOf('e.seq', shown)] : [])]
  const rows = await selectRows(request, scan, where, 'e.seq desc', { limit, skip: query.skip })
  return rows.length === limit || entities.length < tried ? rows : undefined
}

/** Returns the page of the latest matches among the rows of words. Matches before the page are only counted. */
async function findLatest(request: RankedRequest, scan: Scan, where: SqlFragment[], wordRows: SqlFragment) {
  const { db, query, rowScope, limit } = request
  const rows: unknown[][] = []
  let { skip } = query
  if (!query.conditions.length && rowScope.all) return selectRows(request, scan, where, 'w.rowid desc', { limit, skip })
  for await (const { conditions } of splitIntoRanges(db, {
    from: SEARCH_WORDS_TABLE,
    where: wordRows,
    by: ['w.rowid'],
    descending: true,
    first: FIRST_RANGE_ROWS + 2 * (skip + limit),
  })) {
    const range = [...conditions, ...where]
    if (skip) {
      const { sql, params } = and(range)
      const [[counted] = []] = await db.query(`select count(*) from ${scan.from} where ${sql}`, params)
      if (Number(counted) <= skip) {
        skip -= Number(counted)
        continue
      }
    }
    rows.push(...(await selectRows(request, scan, range, 'w.rowid desc', { limit: limit - rows.length, skip })))
    skip = 0
    if (rows.length >= limit) break
  }
  return rows
}

/**
 * Returns a scan of the entities that contain all words, ranked by the rare words only, or by all words when all or
 * none of them are rare. To weigh a word, FTS5 reads all rows that contain it.
 */
async function rankByRareWords(db: Db, model: Model, search: string): Promise<Scan> {
  if (db.wordIndex === 'gin') return rankedScan(model, search)
  const words = search.split(TERM_SEPARATOR)
  const sizes = await Promise.all(words.map((word) => estimateRows(db, SEARCH_WORDS_TABLE, matchSql(word))))
  const rareWords = words.filter((_, n) => sizes[n]! < thresholds.few)
  if (!rareWords.length || rareWords.length === words.length) return rankedScan(model, search)
  const scan = rankedScan(model, rareWords.join(TERM_SEPARATOR))
  return { ...scan, where: and([scan.where, entityHasWordsSql(search)]) }
}

type RankedRequest = { db: Db; columns: string[]; model: Model; rowScope: RowScope; query: Query; limit: number }
