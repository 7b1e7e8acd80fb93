import type { Model } from '../blueprints/model'
import type { Reach } from '../blueprints/rules'
import type { Db } from '../storage/port'
import { and, type Indexed, indexWhere, isIndexed, list, noneOf, type Part, part } from './conditions'
import type { Passed } from './cursor'
import { beyond, isCreated, mayLack, type Place, sorting, type Term, termsOf } from './order'
import type { Condition, Order, Query, Target } from './query'
import {
  alone,
  collecting,
  everything,
  filter,
  has,
  matching,
  ofOthers,
  ranked,
  type Scan,
  searched,
  type Walkable,
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
  { limit = query.limit, after, first }: { limit?: number; after?: Passed; first?: Order } = {},
): Promise<Found<Row>> {
  const asked = { db, columns, model, reach, query, limit, first }
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
  const statement = select(asked, chosen, termsOf(order, chosen.time, first), { place })
  if (!place) ways.set(name, { ...statement, until: performance.now() + TRUSTED })
  return ordered(await db.ask(statement.sql, statement.params))
}

type Asked = { db: Db; columns: string[]; model: Model; reach: Reach; query: Query; limit: number; first?: Order }

/** In the order of a field, as the index has it: first those with a value of it, then those without. */
async function walk(asked: Asked, target: Walkable, place: Place | undefined): Promise<unknown[][]> {
  const { db, model, reach, limit } = asked
  const { conditions, skip } = asked.query
  const scan = walking(model, target, conditions)
  const lacks = place?.[0] === null
  const found = lacks ? [] : await having(asked, target, scan, place)
  if (found.length === limit || scan.covered.length) return found
  const passed = found.length || !skip ? skip + found.length : await total(db, scan, reach, conditions)
  const left = { limit: limit - found.length, skip: Math.max(0, skip - passed) }
  return [...found, ...(await lacking(asked, target, { ...left, place: lacks ? place.slice(1) : undefined }))]
}

/**
 * Those that have a value. Where very many share the first one, but more is to be ordered by, each such group is a list
 * of its own, or all of it would have to be sorted.
 */
async function having(asked: Asked, target: Walkable, scan: Scan & { of: Part }, place: Place | undefined) {
  const { query, limit } = asked
  const [first, ...others] = query.order as [Order, ...Order[]]
  const found: unknown[][] = []
  let [from, past] = [place, [] as Part[]]
  while (target.at === 'field' && others.length && !query.skip && found.length < limit) {
    const value = from ? (from[0] as string) : await firstOf(asked.db, scan, first, past)
    if (value === undefined) return found
    const group = { target, is: 'in' as const, values: [value] }
    if ((await few(asked.db, 'entity_index i', indexWhere(group))) < FEW) break
    const alike = { ...query, conditions: [...query.conditions, group], order: others }
    const after = from && { place: from.slice(1) }
    const { rows } = await find(asked.db, asked.columns, asked.model, asked.reach, alike, {
      ...{ limit: limit - found.length, after, first: asked.first ?? first },
    })
    found.push(...rows.map((row) => row.toSpliced(asked.columns.length, 0, value)))
    ;[from, past] = [undefined, [part(`${scan.of.sql} ${first.descending ? '<' : '>'} ?`, value)]]
  }
  if (found.length === limit) return found
  const [, ...terms] = termsOf(query.order, scan.time, asked.first)
  const by = { of: scan.of, descending: first.descending, nullable: false }
  const rest = { ...scan, where: and([scan.where, ...past]) }
  const { sql, params } = select(asked, rest, [by, ...terms], { place: from, limit: limit - found.length })
  return [...found, ...(await asked.db.ask(sql, params))]
}

/** The first value in an order, of those that are not past. */
async function firstOf(db: Db, { of, from, where }: Scan & { of: Part }, order: Order, past: Part[]) {
  const { sql, params } = and([where, ...past])
  const by = `${of.sql} ${way(order)}`
  const [row] = await db.ask(
    `select ${of.sql} from ${from.split(' join ')[0]} where ${sql} order by ${by} limit 1`,
    params,
  )
  return row?.[0] as string | undefined
}

/** Those that have no value. */
async function lacking(asked: Asked, target: Walkable, left: { limit: number; skip: number; place?: Place }) {
  const { order, conditions } = asked.query
  const all = everything(asked.model)
  const terms = termsOf(order.slice(1), all.time, asked.first ?? order[0])
  const without: Condition[] = [...conditions, { target, is: 'absent' }]
  const missing = { of: part('null'), descending: false, nullable: true }
  const { sql, params } = select(asked, all, terms, { ...left, conditions: without }, [missing])
  return asked.db.ask(sql, params)
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
  const by = latest ? 'w.rowid desc' : 'w.rank, e.seq desc'
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
  const { conditions, search } = query
  if (search === undefined && !reach.all && reach.user !== undefined && reach.workspace === undefined) {
    const others = await countOfOthers(db, model, reach.user, conditions)
    if (others !== undefined) return (await count(db, model, { all: true }, query)) - others
  }
  const [condition, ...more] = conditions
  if (reach.all && condition && !more.length && search === undefined) {
    if (isIndexed(condition)) return countIndexed(db, condition)
    const opposite = oppositeOf(condition)
    if (opposite) return (await total(db, everything(model), reach, [])) - (await countIndexed(db, opposite))
  }
  return total(db, await scanOf(db, model, reach, query), reach, conditions)
}

/** Those of others, where nearly all are the user's own: then the index alone counts all, and these are taken away. */
async function countOfOthers(db: Db, model: Model, user: string, conditions: Condition[]): Promise<number | undefined> {
  const sides = ofOthers(model, user)
  let size = 0
  for (const side of sides) size += size < FEW ? await few(db, 'entities e', side) : 0
  if (size >= FEW) return
  let found = 0
  for (const side of sides) found += await total(db, { ...everything(model), where: side }, { all: true }, conditions)
  return found
}

/** What is true of all those of which a condition is not; nothing where the index can't tell. */
function oppositeOf(condition: Condition): Indexed | undefined {
  const { target } = condition
  if (target.at !== 'field' || !target.indexed) return
  if (condition.is === 'absent' && target.single) return { target, is: 'between', from: { value: '', open: false } }
  if (condition.is === 'not in' && condition.values.length) return { target, is: 'in', values: condition.values }
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

const walkable = (target: Target | undefined): target is Walkable =>
  target?.at === 'field' ? target.single && target.indexed : target !== undefined && mayLack(target)

const way = ({ descending }: Order) => (descending ? 'desc' : 'asc')
export const latest = (descending: boolean): Order => ({ target: { at: 'column', column: 'e.created' }, descending })
