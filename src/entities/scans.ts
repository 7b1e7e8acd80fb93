import type { Model } from '../blueprints/model'
import type { Reach } from '../blueprints/rules'
import { and, holds, type Indexed, indexWhere, type Part, part, within } from './conditions'
import type { Condition } from './query'
import type { Rows } from './ranges'

/** The rows that a statement goes through, and what needs not be asked of them any more. */
export type Scan = {
  by: Driver
  from: string
  /** The values of its question marks. */
  given?: unknown[]
  where: Part
  covered: Condition[]
  time: [created: string, seq: string]
  /** The words that lead to the rows. */
  search?: string
}

/** What leads to the rows. */
export type Driver = 'time' | 'value' | 'values' | 'order' | 'words'

/** Every entity of the blueprint. */
export const everything = (model: Model): Scan => ({
  by: 'time',
  from: 'entities e',
  where: part('e.blueprint = ?', model.key),
  covered: [],
  time: ['e.created', 'e.seq'],
})

const INDEX_ALONE = 'entity_index i'
const JOINED = 'entity_index i join entities e on e.seq = i.entity'

/** The entities that have one value, in order of time. */
export const matching = (condition: Indexed): Scan => ({
  by: 'value',
  from: JOINED,
  where: indexWhere(condition),
  covered: [condition],
  time: ['i.created', 'i.entity'],
})

/** The entities that have the words. */
export const searched = (model: Model, search: string): Scan => ({
  ...everything(model),
  by: 'words',
  search,
  where: and([haveWords(search), everything(model).where]),
})

/** The same, with how well each fits. */
export const ranked = (model: Model, search: string): Scan => ({
  ...everything(model),
  by: 'words',
  from: `${WORDS} join entities e on e.seq = w.rowid`,
  where: and([has(search), everything(model).where]),
})

/** The words of each entity. */
export const WORDS = 'search_words w'
/** Whether a row of `WORDS` has the words. */
export const has = (search: string) => (search ? part('w.words match ?', search) : part('1 = 0'))

/** The same of an entity; of those with such numbers, for who goes through all in slices: words are looked up once for each. */
export function haveWords(search: string, from?: number, to?: number): Part {
  const within = from === undefined ? [] : [part('w.rowid >= ? and w.rowid <= ?', from, to)]
  const { sql, params } = and([has(search), ...within])
  return part(`e.seq in (select w.rowid from ${WORDS} where ${sql})`, ...params)
}

/** The entities that meet a condition, each once, in no order. */
export function collecting(model: Model, condition: Indexed): Scan {
  const { sql, params } = indexWhere(condition)
  return {
    ...everything(model),
    by: 'values',
    where: part(`e.seq in (select i.entity from entity_index i where ${sql})`, ...params),
    covered: [condition],
  }
}

const INDEXED = ['e.identifier', 'e.created', 'e.updated']

/** Whether a condition is about a column that an index of the blueprint's entities has. */
export const isOfColumn = ({ target, is }: Condition) =>
  target.at === 'column' && INDEXED.includes(target.column) && (is === 'in' || is === 'between')

/** The entities of which something is true that an index of theirs tells, in no order: none else is gone through for that. */
export function gathering(model: Model, where: Part, covered: Condition[]): Scan {
  const all = everything(model)
  const { sql, params } = and([all.where, where])
  const found = part(`e.seq in (select e.seq from entities e where ${sql})`, ...params)
  // Without the blueprint, no other index of entities is of use, so nobody goes through that.
  return { ...all, by: 'values', where: found, covered }
}

/** The entities that are not of a user, by its two sides in the index. */
export const ofOthers = (model: Model, user: string): Part[] =>
  [part('e."user" < ?', user), part('e."user" > ?', user), part('e."user" is null')].map((whose) =>
    and([everything(model).where, whose]),
  )

/** What a scan leaves to be asked of each entity. */
export function filter(scan: Scan, reach: Reach, conditions: Condition[]): Part {
  const left = conditions.filter((one) => !scan.covered.includes(one)).map(holds)
  return and([scan.where, ...within(reach), ...left])
}

/** What a scan can be gone through by in slices: which rows, in which order, and the part of them that matches. */
export type Passage = Rows & { matching: Part; entity: string }

/** How a scan is gone through in slices. */
export function passageOf(model: Model, scan: Scan, reach: Reach, conditions: Condition[]): Passage {
  if (scan.search !== undefined) {
    const { from, where } = ranked(model, scan.search)
    const matching = and([where, ...within(reach), ...conditions.map(holds)])
    return { from, where: has(scan.search), matching, by: ['w.rowid'], entity: 'e.seq' }
  }
  const { from, where: matching } = alone(scan, reach, conditions)
  // Without what an entity has to be looked at for, which would make finding the end of a slice as dear as all the rest.
  const where = from === INDEX_ALONE ? scan.where : alone(scan, reach, []).where
  return { from, where, matching, by: scan.time, entity: scan.time[1] }
}

/**
 * What a scan goes through, without a join: where PostgreSQL expects few rows, it may go through all of the index for
 * each entity.
 */
export function alone(scan: Scan, reach: Reach, conditions: Condition[]): { from: string; where: Part } {
  if (scan.from !== JOINED) return { from: scan.from, where: filter(scan, reach, conditions) }
  const own = part('e.seq = i.entity')
  const left = filter({ ...scan, where: own }, reach, conditions)
  const met =
    left.sql === own.sql ? [] : [part(`(select 1 from entities e where ${left.sql}) is not null`, ...left.params)]
  return { from: INDEX_ALONE, where: and([scan.where, ...met]) }
}
