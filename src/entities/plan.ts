import type { Model } from '../blueprints/model'
import type { Reach } from '../blueprints/rules'
import type { Db } from '../storage/port'
import { best, type Fitting } from './best'
import { and, indexWhere, isIndexed, list, type Part, part } from './conditions'
import type { Passed } from './cursor'
import { beyond, isCreated, mayLack, type Place, sorting, type Term, termsOf } from './order'
import type { Condition, Order, Query, Target } from './query'
import {
  byColumn,
  collecting,
  everything,
  filter,
  isOfColumn,
  matching,
  ranked,
  type Scan,
  searched,
  type Walkable,
  walking,
} from './scans'
import { FEW, few, TRUSTED, total } from './sizes'
import { shownIn } from './wire'

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

  const { scan, walked } = await wayOf(db, model, reach, query)
  if (walked) return ordered(await walk(asked, walked, place))
  const statement = select(asked, scan, termsOf(query.order, scan.time, first), { place })
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
 * Those that have a value. Where very many share the first one, but more is to be ordered by, that group is a list of its
 * own, or all of it would have to be sorted. Only one: each may take as long as going through all.
 */
async function having(asked: Asked, target: Walkable, scan: Scan & { of: Part }, place: Place | undefined) {
  const { query, limit } = asked
  const [first] = query.order as [Order]
  const group = await firstGroup(asked, target, scan, place)
  const found = group?.rows ?? []
  if (found.length === limit) return found
  const [, ...terms] = termsOf(query.order, scan.time, asked.first)
  const by = { of: scan.of, descending: first.descending, nullable: false }
  const past = group ? [part(`${scan.of.sql} ${first.descending ? '<' : '>'} ?`, group.value)] : []
  const rest = { ...scan, where: and([scan.where, ...past]) }
  const from = group ? undefined : place
  const { sql, params } = select(asked, rest, [by, ...terms], { place: from, limit: limit - found.length })
  return [...found, ...(await asked.db.ask(sql, params))]
}

async function firstGroup(asked: Asked, target: Walkable, scan: Scan & { of: Part }, place: Place | undefined) {
  const { query, limit } = asked
  const [first, ...others] = query.order as [Order, ...Order[]]
  if (target.at === 'column' || !others.length || query.skip) return
  const value = place ? (place[0] as string) : await firstOf(asked.db, scan, first)
  if (value === undefined) return
  const group = { target, is: 'in' as const, values: [value] }
  if ((await few(asked.db, 'entity_index i', indexWhere(group))) < FEW) return
  const alike = { ...query, conditions: [...query.conditions, group], order: others }
  const after = place && { place: place.slice(1) }
  const { rows } = await find(asked.db, asked.columns, asked.model, asked.reach, alike, {
    ...{ limit, after, first: asked.first ?? first },
  })
  return { value, rows: rows.map((row) => row.toSpliced(asked.columns.length, 0, value)) }
}

/** The first value in an order. */
async function firstOf(db: Db, { of, from, where }: Scan & { of: Part }, order: Order) {
  const rows = from.split(' join ')[0]
  const [row] = await db.ask(
    `select ${of.sql} from ${rows} where ${where.sql} order by ${of.sql} ${way(order)} limit 1`,
    where.params,
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

type Known = Statement & { until: number }
const ways = new WeakMap<Query, Map<string, Known>>()
const WAYS = 100 // of one query: as many callers with a reach of their own

function waysOf(query: Query) {
  const known = ways.get(query)
  if (known && known.size < WAYS) return known
  const fresh = new Map<string, Known>()
  ways.set(query, fresh)
  return fresh
}

/** What is shown of those that were found, by their numbers; those that do not match any more are missing. */
export const shownAmong = async (db: Db, model: Model, reach: Reach, query: Query, found: number[]) =>
  new Map((await among(db, `e.seq, ${shownIn(model)}`, model, reach, query, found)) as [number, string][])

/** Columns of those of these entities that match. */
export function among(db: Db, columns: string, model: Model, reach: Reach, query: Query, found: number[]) {
  const scan = query.search === undefined ? everything(model) : searched(model, query.search)
  const numbers = part(`e.seq in (${found.map(() => '?').join(', ')})`, ...found)
  const { sql, params } = and([filter(scan, reach, query.conditions), numbers])
  return db.ask(`select ${columns} from ${scan.from} where ${sql}`, params)
}

/** A way through the entities of a query that can be gone in slices, in the order of time. */
export const scanOf = async (db: Db, model: Model, reach: Reach, query: Query): Promise<Scan> =>
  (await wayOf(db, model, reach, { ...query, ranked: false, order: [latest(true)] })).scan

/** A condition that was thought of as a way: how many rows of the index meet it, as far as that was counted. */
export type Considered = { condition: Condition | 'reach'; rows: number; scan: Scan; ordered: boolean }

/** Which rows to go through, in the order of a field or in no order that matters; and what was considered. */
export type Way = { scan: Scan; walked?: Walkable; considered: Considered[] }

export async function wayOf(db: Db, model: Model, reach: Reach, query: Query): Promise<Way> {
  if (query.ranked) return { scan: ranked(model, query.search!), considered: [] }
  const { scan, considered } = await choose(db, model, reach, query)
  const target = query.order[0]?.target
  if (scan || !walkable(target)) return { scan: scan ?? everything(model), considered }
  return { scan: walking(model, target, query.conditions), walked: target, considered }
}

/**
 * Which rows to go through: those of the condition that fewest meet, when they are few or are kept in the order that is
 * asked for. Otherwise no scan: go through all in their order.
 */
async function choose(
  db: Db,
  model: Model,
  reach: Reach,
  query: Query,
): Promise<{ scan?: Scan; considered: Considered[] }> {
  const { conditions, order, search } = query
  if (search !== undefined) return { scan: searched(model, search), considered: [] }
  const byTime = order.length === 1 && isCreated(order[0]!.target)
  const indexed = conditions.filter(isIndexed)
  const equal = indexed.filter((one) => one.is === 'in' && one.values.length === 1)
  if (byTime && reach.all && indexed.length === 1 && equal.length === 1)
    return { scan: matching(equal[0]!), considered: [] }
  const considered: Considered[] = []
  for (const condition of indexed) {
    const ordered = byTime && equal.includes(condition)
    const scan = ordered ? matching(condition) : collecting(model, condition)
    considered.push({ condition, rows: await few(db, 'entity_index i', indexWhere(condition)), scan, ordered })
  }
  for (const condition of conditions.filter(isOfColumn)) {
    const scan = byColumn(model, condition)
    considered.push({ condition, rows: await few(db, scan.from, scan.where), scan, ordered: false })
  }
  if (considered.length && !reach.all) {
    const scan = everything(model)
    const rows = await few(db, scan.from, filter(scan, reach, []))
    considered.push({ condition: 'reach', rows, scan, ordered: byTime })
  }
  considered.sort((one, other) => one.rows - other.rows || Number(other.ordered) - Number(one.ordered))
  const [least] = considered
  const best = least && least.rows < FEW ? least : considered.find(({ ordered }) => ordered)
  return { scan: best?.scan ?? (byTime ? everything(model) : undefined), considered }
}

const walkable = (target: Target | undefined): target is Walkable =>
  target?.at === 'field' ? target.single && target.indexed : target !== undefined && mayLack(target)

const way = ({ descending }: Order) => (descending ? 'desc' : 'asc')
export const latest = (descending: boolean): Order => ({ target: { at: 'column', column: 'e.created' }, descending })
