import type { Model } from '../blueprints/model'
import type { Reach } from '../blueprints/rules'
import type { Db } from '../storage/port'
import { and, type FieldTarget, type Indexed, indexWhere, isIndexed, list, type Part, part, value } from './conditions'
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
import { shownIn } from './wire'

/** A condition that fewer rows meet is answered by collecting them; counting stops here. */
const FEW = 1_000

type Statement = { sql: string; params: unknown[] }

/**
 * Columns (of the table `e`) of the entities that a query asks for, of those within reach, in its order; at most `limit`.
 * The way to find them is remembered for as long as the estimates are that it was chosen by.
 */
export async function find<Row extends unknown[]>(
  db: Db,
  columns: string,
  model: Model,
  reach: Reach,
  query: Query,
  limit = query.limit,
): Promise<Row[]> {
  const ways = waysOf(query)
  const name = reach.all ? `${columns} ${limit}` : `${columns} ${limit} ${reach.user} ${reach.workspace}`
  const known = ways.get(name)
  if (known && known.until > performance.now()) return db.ask(known.sql, known.params) as Promise<Row[]>

  const { order, conditions, skip } = query
  const scan = query.ranked ? ranked(model, query.search!) : await choose(db, model, reach, query)
  const target = order[0]?.target
  if (!scan && walkable(target)) return walk<Row>(db, columns, model, reach, query, limit, target)
  const chosen = scan ?? everything(model)
  const by = query.ranked ? await ranking(db, query) : sorting(order, chosen.time)
  const statement = select(columns, chosen, reach, by, conditions, limit, skip)
  ways.set(name, { ...statement, until: performance.now() + TRUSTED })
  return db.ask(statement.sql, statement.params) as Promise<Row[]>
}

/** In the order of a field, as the index has it: first those with a value of it, then those without. */
async function walk<Row extends unknown[]>(
  db: Db,
  columns: string,
  model: Model,
  reach: Reach,
  { order, conditions, skip }: Query,
  limit: number,
  target: FieldTarget,
): Promise<Row[]> {
  const ask = ({ sql, params }: Statement) => db.ask(sql, params) as Promise<Row[]>
  const scan = walking(target, conditions)
  const found = await ask(select(columns, scan, reach, walkSorting(order), conditions, limit, skip))
  if (found.length === limit || scan.covered.length) return found
  const passed = found.length ? skip + found.length : await total(db, scan, reach, conditions)
  const rest = everything(model)
  const lacking: Condition[] = [...conditions, { target, is: 'absent' }]
  const by = sorting(order.slice(1), rest.time, order[0])
  return [
    ...found,
    ...(await ask(select(columns, rest, reach, by, lacking, limit - found.length, Math.max(0, skip - passed)))),
  ]
}

function select(
  columns: string,
  scan: Scan,
  reach: Reach,
  by: Part,
  conditions: Condition[],
  limit: number,
  skip: number,
): Statement {
  const where = filter(scan, reach, conditions)
  const sql = `select ${columns} from ${scan.from} where ${where.sql} order by ${by.sql} limit ? offset ?`
  return { sql, params: [...where.params, ...by.params, limit, skip] }
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
  new Map((await among(db, `e.seq, ${shownIn(model)}`, model, reach, query, found)) as [number, string][])

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
  const byTime = order.length === 1 && isCreated(order[0]!)
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

/** A word that so many have says nothing of any, and to compare them all would take long. */
const RANKED = 5_000

/** The best first; where too many have the words, the latest. */
async function ranking(db: Db, { search = '' }: Query): Promise<Part> {
  return part((await few(db, WORDS, has(search), RANKED)) < RANKED ? 'w.rank, e.seq desc' : 'e.seq desc')
}

const walkable = (target: Target | undefined): target is FieldTarget =>
  target?.at === 'field' && target.single && target.indexed

/** Missing values last, whichever way; entities that agree in everything in order of time, the way the first goes. */
function sorting(order: Order[], [created, seq]: Scan['time'], first = order[0]): Part {
  const by = order.map((one) => {
    if (isCreated(one)) return part(`${created} ${way(one)}`)
    const { sql, params } = value(one.target)
    return part(`${sql} ${way(one)} nulls last`, ...params)
  })
  const last = first ? way(first) : 'desc'
  if (!order.some(isCreated)) by.push(part(`${created} ${last}`))
  return list([...by, part(`${seq} ${last}`)])
}

/** The same for a walk, where the first order is that of the index. */
function walkSorting([first, ...others]: Order[]): Part {
  const { sql, params } = sorting(others, ['i.created', 'i.entity'], first)
  return part(`i.value ${way(first!)}, ${sql}`, ...params)
}

const way = ({ descending }: Order) => (descending ? 'desc' : 'asc')
const latest = (descending: boolean): Order => ({ target: { at: 'column', column: 'e.created' }, descending })
const isCreated = ({ target }: Order) => target.at === 'column' && target.column === 'e.created'
