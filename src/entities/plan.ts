import type { Model } from '../blueprints/model'
import type { Reach } from '../blueprints/rules'
import type { Db } from '../storage/port'
import { and, type FieldTarget, type Indexed, indexWhere, isIndexed, list, noneOf, type Part, part } from './conditions'
import type { Passed } from './cursor'
import { beyond, isCreated, type Place, sorting, type Term, termsOf } from './order'
import type { Condition, Order, Query, Target } from './query'
import {
  alone,
  collecting,
  everything,
  filter,
  has,
  matching,
  ranked,
  type Scan,
  searched,
  WORDS,
  walking,
} from './scans'

/** A condition that fewer rows meet is answered by collecting them; counting stops here. */
const FEW = 1_000

type Statement = { sql: string; params: unknown[] }

export type Found<Row> = {
  rows: Row[]
  /** Where a page ends that has so many of them, one at least. */
  passed(count: number): Passed
}

/**
 * Columns (of the table `e`) of the entities that a query asks for, of those within reach, in its order; at most `limit`,
 * from the beginning or after what was passed. The way to find them is remembered for as long as the estimates are that
 * it was chosen by.
 */
export async function find<Row extends unknown[]>(
  db: Db,
  columns: string[],
  model: Model,
  reach: Reach,
  query: Query,
  { limit = query.limit, after }: { limit?: number; after?: Passed } = {},
): Promise<Found<Row>> {
  const asked = { db, columns, model, reach, query, limit }
  if (query.ranked) return best(asked, after as Fitting | undefined)
  const ordered = (rows: unknown[][]): Found<Row> => ({
    rows: rows as Row[],
    passed: (count) => ({ place: rows[count - 1]!.slice(columns.length) as Place }),
  })
  const place = (after as { place: Place } | undefined)?.place
  const ways = waysOf(query)
  const name = JSON.stringify([columns, limit, reach])
  const known = place ? undefined : ways.get(name)
  if (known && known.until > performance.now()) return ordered(await db.ask(known.sql, known.params))

  const { order } = query
  const scan = await choose(db, model, reach, query)
  const target = order[0]?.target
  if (!scan && walkable(target)) return ordered(await walk(asked, target, place))
  const chosen = scan ?? everything(model)
  const statement = select(asked, chosen, termsOf(order, chosen.time), { place })
  if (!place) ways.set(name, { ...statement, until: performance.now() + TRUSTED })
  return ordered(await db.ask(statement.sql, statement.params))
}

type Asked = { db: Db; columns: string[]; model: Model; reach: Reach; query: Query; limit: number }

/** In the order of a field, as the index has it: first those with a value of it, then those without. */
async function walk(asked: Asked, target: FieldTarget, place: Place | undefined): Promise<unknown[][]> {
  const { db, model, reach, limit } = asked
  const { order, conditions, skip } = asked.query
  const ask = ({ sql, params }: Statement) => db.ask(sql, params)
  const scan = walking(target, conditions)
  const [, ...others] = termsOf(order, scan.time)
  const terms = [{ of: part('i.value'), descending: order[0]!.descending, nullable: false }, ...others]
  const found = place?.[0] === null ? [] : await ask(select(asked, scan, terms, { place }))
  if (found.length === limit || scan.covered.length) return found
  const passed = found.length || !skip ? skip + found.length : await total(db, scan, reach, conditions)
  const rest = everything(model)
  const lacking: Condition[] = [...conditions, { target, is: 'absent' }]
  const missing = { of: part('null'), descending: false, nullable: true }
  const by = termsOf(order.slice(1), rest.time, order[0])
  const from = place?.[0] === null ? place.slice(1) : undefined
  const left = { limit: limit - found.length, skip: Math.max(0, skip - passed), place: from, conditions: lacking }
  return [...found, ...(await ask(select(asked, rest, by, left, [missing])))]
}

/** The places of what a search shows best first: those that were shown are left out from then on. */
type Fitting = { shown: number[]; from?: number }

/** How many come by how well they fit; as all must be told that were shown, the rest come by time. */
const BEST = 300
/** A word that so many have says nothing of any, and to compare them all would take long. */
const RANKED = 5_000

/** The best first; where too many have the words, the latest. */
async function best<Row extends unknown[]>(
  asked: Asked,
  { shown, from }: Fitting = { shown: [] },
): Promise<Found<Row>> {
  const { db, columns, model, reach, query, limit } = asked
  const { search = '', conditions, skip } = query
  const latest = from !== undefined || shown.length >= BEST || (await few(db, WORDS, has(search), RANKED)) >= RANKED
  const where = [filter(ranked(model, search), reach, conditions)]
  if (shown.length) where.push(noneOf('e.seq', shown))
  if (from !== undefined) where.push(part('e.seq < ?', from))
  const { sql, params } = and(where)
  const by = latest ? 'e.seq desc' : 'w.rank, e.seq desc'
  const rows = await db.ask(
    `select ${[...columns, 'e.seq'].join(', ')} from ${ranked(model, search).from} where ${sql} order by ${by} limit ? offset ?`,
    [...params, limit, skip],
  )
  const numbers = rows.map((row) => row.at(-1) as number)
  return {
    rows: rows as Row[],
    passed: (count) =>
      latest ? { shown, from: numbers[count - 1]! } : { shown: [...shown, ...numbers.slice(0, count)] },
  }
}

/** The columns, and what there is of each term. */
function select(
  { columns, reach, query, limit: most }: Asked,
  scan: Scan,
  terms: Term[],
  { limit = most, skip = query.skip, place, conditions = query.conditions }: Partial<Query> & { place?: Place },
  missing: Term[] = [],
): Statement {
  const told = list([...columns.map((column) => part(column)), ...[...missing, ...terms].map(({ of }) => of)])
  const { sql, params } = and([filter(scan, reach, conditions), ...(place ? [beyond(terms, place)] : [])])
  const by = sorting(terms)
  return {
    sql: `select ${told.sql} from ${scan.from} where ${sql} order by ${by.sql} limit ? offset ?`,
    params: [...told.params, ...params, ...by.params, limit, skip],
  }
}

type Way = Statement & { until: number }
const ways = new WeakMap<Query, Map<string, Way>>()
const WAYS = 100 // of one query: as many callers with a reach of their own

function waysOf(query: Query) {
  const known = ways.get(query)
  if (known && known.size < WAYS) return known
  const fresh = new Map<string, Way>()
  ways.set(query, fresh)
  return fresh
}

/** What is shown of those that were found, by their numbers; those that do not match any more are missing. */
export const shownAmong = async (db: Db, model: Model, reach: Reach, query: Query, found: number[]) =>
  new Map((await among(db, 'e.seq, e.shown', model, reach, query, found)) as [number, string][])

/** Columns of those of these entities that match. */
export function among(db: Db, columns: string, model: Model, reach: Reach, query: Query, found: number[]) {
  const scan = query.search === undefined ? everything(model) : searched(model, query.search)
  const numbers = part(`e.seq in (${found.map(() => '?').join(', ')})`, ...found)
  const { sql, params } = and([filter(scan, reach, query.conditions), numbers])
  return db.ask(`select ${columns} from ${scan.from} where ${sql}`, params)
}

/** How many entities match. */
export async function count(db: Db, model: Model, reach: Reach, query: Query): Promise<number> {
  const [condition, ...others] = query.conditions
  if (reach.all && condition && !others.length && isIndexed(condition) && query.search === undefined)
    return countIndexed(db, condition)
  return total(db, await scanOf(db, model, reach, query), reach, query.conditions)
}

/** A way through the entities of a query that can be gone in slices, in the order of time. */
export const scanOf = async (db: Db, model: Model, reach: Reach, query: Query): Promise<Scan> =>
  (await choose(db, model, reach, { ...query, order: [latest(true)] })) ?? everything(model)

/** The index alone can tell; what has several values is in it several times. */
async function countIndexed(db: Db, condition: Indexed) {
  const once = condition.target.single || (condition.is === 'in' && condition.values.length === 1)
  const { sql, params } = indexWhere(condition)
  const counted = once ? '*' : 'distinct i.entity'
  const [row] = await db.ask(`select count(${counted}) from entity_index i where ${sql}`, params)
  return Number(row![0])
}

async function total(db: Db, scan: Scan, reach: Reach, conditions: Condition[]) {
  const { from, where } = alone(scan, reach, conditions)
  const [row] = await db.ask(`select count(*) from ${from} where ${where.sql}`, where.params)
  return Number(row![0])
}

/**
 * Which rows to go through: those of the condition that fewest meet, when they are few or are kept in the order that is
 * asked for. Otherwise undefined: go through all in their order.
 */
async function choose(db: Db, model: Model, reach: Reach, query: Query): Promise<Scan | undefined> {
  const { conditions, order, search } = query
  if (search !== undefined) return searched(model, search)
  const byTime = order.length === 1 && isCreated(order[0]!.target)
  const indexed = conditions.filter(isIndexed)
  const equal = indexed.filter((one) => one.is === 'in' && one.values.length === 1)
  if (byTime && reach.all && indexed.length === 1 && equal.length === 1) return matching(equal[0]!)
  const sized: { size: number; scan: Scan; ordered: boolean }[] = []
  for (const condition of indexed) {
    const ordered = byTime && equal.includes(condition)
    const scan = ordered ? matching(condition) : collecting(model, condition)
    sized.push({ size: await few(db, 'entity_index i', indexWhere(condition)), scan, ordered })
  }
  if (sized.length && !reach.all) {
    const scan = everything(model)
    sized.push({ size: await few(db, scan.from, filter(scan, reach, [])), scan, ordered: byTime })
  }
  sized.sort((one, other) => one.size - other.size || Number(other.ordered) - Number(one.ordered))
  const best = sized[0] && sized[0].size < FEW ? sized[0] : sized.find(({ ordered }) => ordered)
  return best?.scan ?? (byTime ? everything(model) : undefined)
}

/**
 * The number of rows, but no more than `FEW`; as it was a few seconds ago at most. It decides only how to look, so an old
 * number costs time and never a row.
 */
async function few(db: Db, from: string, { sql, params }: Part, most = FEW) {
  const estimates = estimatesOf(db)
  const [key, time] = [`${from} ${sql} ${params.join(' ')}`, performance.now()]
  const known = estimates.get(key)
  if (known && known.until > time) return known.size
  const [row] = await db.ask(`select count(*) from (select 1 from ${from} where ${sql} limit ${most}) as few`, params)
  const size = Number(row![0])
  if (estimates.size >= ESTIMATES) estimates.clear()
  estimates.set(key, { size, until: time + TRUSTED })
  return size
}

const TRUSTED = 5_000 // ms
const ESTIMATES = 5_000
const estimated = new WeakMap<Db, Map<string, { size: number; until: number }>>()

function estimatesOf(db: Db) {
  const known = estimated.get(db) ?? new Map()
  estimated.set(db, known)
  return known
}

const walkable = (target: Target | undefined): target is FieldTarget =>
  target?.at === 'field' && target.single && target.indexed

export const latest = (descending: boolean): Order => ({ target: { at: 'column', column: 'e.created' }, descending })
