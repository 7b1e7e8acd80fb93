import type { Model } from '../blueprints/model'
import type { Reach } from '../blueprints/rules'
import {
  and,
  type FieldTarget,
  holds,
  type Indexed,
  indexWhere,
  isIndexed,
  type Part,
  part,
  valueIs,
  within,
} from './conditions'
import type { Condition, Target } from './query'

/** The rows that a statement goes through, and what needs not be asked of them any more. */
export type Scan = { by: Driver; from: string; where: Part; covered: Condition[]; time: [created: string, seq: string] }

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
export const searched = (model: Model, search: string): Scan => {
  const { sql, params } = has(search)
  const found = part(`e.seq in (select w.rowid from ${WORDS} where ${sql})`, ...params)
  return { ...everything(model), by: 'words', where: and([found, everything(model).where]) }
}

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

/** The same of entities with such numbers, for those who go through all in slices: words are looked up once for each. */
export function haveWords(search: string, from: number, to: number): Part {
  const { sql, params } = and([has(search), part('w.rowid >= ? and w.rowid <= ?', from, to)])
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

/** The entities that meet such a condition. */
export const byColumn = (model: Model, condition: Condition): Scan => ({
  ...everything(model),
  by: 'values',
  where: and([everything(model).where, holds(condition)]),
  covered: [condition],
})

/** What entities may be without, and an index has in order. */
export type Walkable = FieldTarget | Extract<Target, { at: 'column' }>

/** The entities that have a value of it, in its order; and what that value is. */
export function walking(model: Model, target: Walkable, conditions: Condition[]): Scan & { of: Part } {
  const all = everything(model)
  if (target.at === 'column')
    return {
      ...all,
      by: 'order',
      where: and([all.where, part(`${target.column} is not null`)]),
      of: part(target.column),
    }
  const own = conditions.filter((one): one is Indexed => isIndexed(one) && one.target.label === target.label)
  const field = part('i.field = ? and i.path = ?', target.field.number, target.path)
  const where = and([field, ...own.map((one) => valueIs('i.value', one))])
  return { by: 'order', from: JOINED, where, covered: own, time: ['i.created', 'i.entity'], of: part('i.value') }
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
  return { from: 'entity_index i', where: and([scan.where, ...met]) }
}
