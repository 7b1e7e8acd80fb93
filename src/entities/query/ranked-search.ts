import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import type { Db } from '../../storage/port'
import { TERM_SEPARATOR } from '../search/tokenizer'
import { and, fragment, noneOf, type SqlFragment } from '../store/sql-fragments'
import { estimateRows, thresholds } from './cardinality'
import type { Query } from './query-parser'
import { splitIntoRanges } from './ranges'
import { entityHasWordsSql, filterSql, matchSql, rankedScan, type Scan, SEARCH_WORDS_TABLE } from './scans'
import type { FindResult } from './select-sql'

/** The places of what a search shows best first: those that were shown are left out from then on. */
export type RankedCursor = { shown: number[]; from?: number }

// Of all that a word may go on with.
const [FIRST_CHARACTER, LAST_CHARACTER] = ['0', '\u{10ffff}']

/** How many come by how well they fit: as all must be told that were shown, the rest come by time. */
const MAX_RANKED_SHOWN = 300
/** Words that so many have together say nothing of any, and to compare them all would take long. */
const MAX_RANKED_MATCHES = 500
/** Of the latest, so many are looked at first, and more where too few of them match. */
const FIRST_RANGE_ROWS = 200 // words

/** The best first; where too many have the words, the latest. */
export async function findRanked<Row extends unknown[]>(
  request: RankedRequest,
  { shown, from }: RankedCursor = { shown: [] },
): Promise<FindResult<Row>> {
  const { db, columns, model, rowScope, query, limit } = request
  const { skip } = query
  const search = await dropUselessPrefixes(db, query.search ?? '')
  const byTime =
    from !== undefined ||
    shown.length >= MAX_RANKED_SHOWN ||
    (await estimateRows(db, SEARCH_WORDS_TABLE, matchSql(search), MAX_RANKED_MATCHES)) >= MAX_RANKED_MATCHES
  const scan = byTime ? rankedScan(model, search) : await rankByRareWords(db, model, search)
  const where = [filterSql(scan, rowScope, query.conditions)]
  if (shown.length) where.push(noneOf('e.seq', shown))
  if (from !== undefined) where.push(fragment('e.seq < ?', from))
  const by = byTime ? 'w.rowid desc' : 'w.rank, e.seq desc'
  const readRows = (more: SqlFragment[], limit: number, skip: number) => {
    const { sql, params } = and([...where, ...more])
    const columnList = [...columns, 'e.seq'].join(', ')
    return db.query(`select ${columnList} from ${scan.from} where ${sql} order by ${by} limit ? offset ?`, [
      ...params,
      limit,
      skip,
    ])
  }
  let rows: unknown[][] = []
  if (!byTime) rows = await readRows([], limit, skip)
  else {
    const wordRows = and([matchSql(search), ...(from === undefined ? [] : [fragment('w.rowid < ?', from)])])
    const first = FIRST_RANGE_ROWS + 2 * (skip + limit)
    for await (const { conditions } of splitIntoRanges(db, {
      from: SEARCH_WORDS_TABLE,
      where: wordRows,
      by: ['w.rowid'],
      descending: true,
      first,
    })) {
      rows.push(...(await readRows(conditions, skip + limit - rows.length, 0)))
      if (rows.length >= skip + limit) break
    }
    rows = rows.slice(skip)
  }
  const numbers = rows.map((row) => row.at(-1) as number)
  return {
    rows: rows as Row[],
    positionAfter: (count) =>
      byTime ? { shown, from: numbers[count - 1]! } : { shown: [...shown, ...numbers.slice(0, count)] },
  }
}

/**
 * Those that have all words, by how well those fit that few have; by all words where many have each. To weigh a word,
 * SQLite goes through all that have it.
 */
async function rankByRareWords(db: Db, model: Model, search: string): Promise<Scan> {
  const words = search.split(TERM_SEPARATOR)
  const sizes = await Promise.all(words.map((word) => estimateRows(db, SEARCH_WORDS_TABLE, matchSql(word))))
  const rareWords = words.filter((_, n) => sizes[n]! < thresholds.few)
  if (!rareWords.length || rareWords.length === words.length) return rankedScan(model, search)
  const scan = rankedScan(model, rareWords.join(TERM_SEPARATOR))
  return { ...scan, where: and([scan.where, entityHasWordsSql(search)]) }
}

/** Where no longer word begins as the last one does, it is asked for as it is: of a beginning, all that has it is collected. */
async function dropUselessPrefixes(db: Db, search: string): Promise<string> {
  const prefixes = search.match(/[^ (]+(?=\*)/g) ?? []
  const selectLonger = 'select 1 from search_vocabulary where term >= ? and term < ? limit 1'
  const needed = await Promise.all(
    prefixes.map(
      async (word) =>
        (await db.query(selectLonger, [`${word}${FIRST_CHARACTER}`, `${word}${LAST_CHARACTER}`])).length > 0,
    ),
  )
  return prefixes.reduce((text, word, n) => (needed[n] ? text : text.replace(`${word}*`, word)), search)
}

type RankedRequest = { db: Db; columns: string[]; model: Model; rowScope: RowScope; query: Query; limit: number }
