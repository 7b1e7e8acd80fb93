import type { Model } from '../blueprints/model'
import type { Reach } from '../blueprints/rules'
import type { Db } from '../storage/port'
import { and, noneOf, type Part, part } from './conditions'
import type { Found } from './plan'
import type { Query } from './query'
import { rangesOf } from './ranges'
import { filter, has, haveWords, ranked, type Scan, WORDS } from './scans'
import { bounds, few } from './sizes'
import { AND } from './words'

/** The places of what a search shows best first: those that were shown are left out from then on. */
export type Fitting = { shown: number[]; from?: number }

// Of all that a word may go on with.
const [FIRST, LAST] = ['0', '\u{10ffff}']

/** How many come by how well they fit: as all must be told that were shown, the rest come by time. */
const BEST = 300
/** Words that so many have together say nothing of any, and to compare them all would take long. */
const RANKED = 500
/** Of the latest, so many are looked at first, and more where too few of them match. */
const FIRST_SLICE = 200 // words

/** The best first; where too many have the words, the latest. */
export async function best<Row extends unknown[]>(
  asked: Asked,
  { shown, from }: Fitting = { shown: [] },
): Promise<Found<Row>> {
  const { db, columns, model, reach, query, limit } = asked
  const { skip } = query
  const search = await withoutNeedlessBeginnings(db, query.search ?? '')
  const latest = from !== undefined || shown.length >= BEST || (await few(db, WORDS, has(search), RANKED)) >= RANKED
  const scan = latest ? ranked(model, search) : await weighed(db, model, search)
  const where = [filter(scan, reach, query.conditions)]
  if (shown.length) where.push(noneOf('e.seq', shown))
  if (from !== undefined) where.push(part('e.seq < ?', from))
  const by = latest ? 'w.rowid desc' : 'w.rank, e.seq desc'
  const ask = (more: Part[], limit: number, skip: number) => {
    const { sql, params } = and([...where, ...more])
    const told = [...columns, 'e.seq'].join(', ')
    return db.ask(`select ${told} from ${scan.from} where ${sql} order by ${by} limit ? offset ?`, [
      ...params,
      limit,
      skip,
    ])
  }
  let rows: unknown[][] = []
  if (!latest) rows = await ask([], limit, skip)
  else {
    const own = and([has(search), ...(from === undefined ? [] : [part('w.rowid < ?', from)])])
    const first = FIRST_SLICE + 2 * (skip + limit)
    for await (const { conditions } of rangesOf(db, {
      from: WORDS,
      where: own,
      by: ['w.rowid'],
      descending: true,
      first,
    })) {
      rows.push(...(await ask(conditions, skip + limit - rows.length, 0)))
      if (rows.length >= skip + limit) break
    }
    rows = rows.slice(skip)
  }
  const numbers = rows.map((row) => row.at(-1) as number)
  return {
    rows: rows as Row[],
    passed: (count) =>
      latest ? { shown, from: numbers[count - 1]! } : { shown: [...shown, ...numbers.slice(0, count)] },
  }
}

/**
 * Those that have all words, by how well those fit that few have; by all words where many have each. To weigh a word,
 * SQLite goes through all that have it.
 */
async function weighed(db: Db, model: Model, search: string): Promise<Scan> {
  const words = search.split(AND)
  const sizes = await Promise.all(words.map((word) => few(db, WORDS, has(word))))
  const telling = words.filter((_, n) => sizes[n]! < bounds.few)
  if (!telling.length || telling.length === words.length) return ranked(model, search)
  const scan = ranked(model, telling.join(AND))
  return { ...scan, where: and([scan.where, haveWords(search)]) }
}

/** Where no longer word begins as the last one does, it is asked for as it is: of a beginning, all that has it is collected. */
async function withoutNeedlessBeginnings(db: Db, search: string): Promise<string> {
  const beginnings = search.match(/[^ (]+(?=\*)/g) ?? []
  const longer = 'select 1 from search_vocabulary where term >= ? and term < ? limit 1'
  const needed = await Promise.all(
    beginnings.map(async (word) => (await db.ask(longer, [`${word}${FIRST}`, `${word}${LAST}`])).length > 0),
  )
  return beginnings.reduce((text, word, n) => (needed[n] ? text : text.replace(`${word}*`, word)), search)
}

type Asked = { db: Db; columns: string[]; model: Model; reach: Reach; query: Query; limit: number }
