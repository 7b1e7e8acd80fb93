import type { CompoundParts, OwnerColumn } from '../../blueprints/compound-parts'
import { type CompoundIndex, type FieldIndex, isNeverIndexed } from '../../blueprints/field-indexes'
import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import { BoundedMap } from '../../core/bounded-map'
import { weakCached } from '../../core/weak-cache'
import { toCompoundPath } from '../store/compound-keys'
import { isIndexed } from '../store/index-keys'
import { and, fragment, type SqlFragment } from '../store/sql-fragments'
import { estimateRows, thresholds } from './cardinality'
import { isAbout } from './id-set'
import { isCreated, matchesIndexOrder, type SortPosition } from './order'
import type { Query } from './query-parser'
import type { FindRequest, PageWindow } from './select-sql'
import { comparisonSql, conditionSql, scopeSql } from './sql-conditions'
import type { Condition, Predicate, Target } from './target'

type Part = number | OwnerColumn

/** The values that all matching entities have, by field or owner column, with their source: a condition or the row scope. */
type KnownValues = Map<Part, { value: string; by: Condition | 'scope' }>

/**
 * The index rows that a query reads. Entities without a value of the sort field come last. A field index counts as a compound
 * index of the field in order of time.
 */
export type CompoundRows = {
  index: CompoundParts & { number: number }
  /** The index whose last use is recorded. */
  usedIndex: FieldIndex
  where: SqlFragment
  /** The part of the index in which the rows are consecutive; undefined when other rows lie between them. */
  at: SqlFragment | undefined
  without: SqlFragment | undefined
  /** The conditions that the index does not cover, which are checked on each entity. */
  left: Condition[]
  /** The SQL for these and the row scope; undefined when the rows are exactly the matching entities. */
  rest: SqlFragment | undefined
}

const OWNER_COLUMNS: Partial<Record<string, OwnerColumn>> = { 'e."user"': 'user', 'e.workspace': 'workspace' }

/** Returns the values that all matching entities have; undefined when an owner would need two values. */
function readKnownValues(rowScope: RowScope, { conditions }: Pick<Query, 'conditions'>): KnownValues | undefined {
  const values: KnownValues = new Map()
  for (const condition of conditions) {
    const part = toPart(condition)
    if (part === undefined || values.has(part)) continue
    values.set(part, { value: `${(condition as Predicate & { is: 'in' }).values[0]}`, by: condition })
  }
  for (const [part, value] of scopeValues(rowScope) ?? []) {
    const known = values.get(part)
    if (known && known.value !== value) return
    if (!known) values.set(part, { value, by: 'scope' })
  }
  return values
}

/** Returns the field or owner column of a condition that requires one value of it. */
function toPart({ target, ...test }: Condition): Part | undefined {
  if (test.is !== 'in' || test.values.length !== 1) return
  if (target.at === 'column') return OWNER_COLUMNS[target.column]
  if (target.single && !target.path && !isNeverIndexed(target.field)) return target.field.number
}

/** Returns the owners of the entities in a row scope; undefined when it allows alternatives. */
function scopeValues(rowScope: RowScope): [OwnerColumn, string][] | undefined {
  if (rowScope.all) return []
  const { user, within, workspace } = rowScope
  if (workspace !== undefined) return user === undefined ? [['workspace', workspace]] : undefined
  if (user === undefined) return
  return [['user', user], ...(within === undefined ? [] : [['workspace', within] as [OwnerColumn, string]])]
}

/** Returns the field that a query sorts by, null for time, or undefined when no compound index has the order. */
function readSortField({ order, search, words = search }: Query): number | null | undefined {
  const [first] = order
  if (words !== undefined || !first || !matchesIndexOrder(order, first)) return
  const { target } = first
  if (isCreated(target)) return null
  return target.at === 'field' && target.single && !isNeverIndexed(target.field) ? target.field.number : undefined
}

/** Finds the index rows for a query. A query belongs to one model, so the result is cached by row scope. */
type FindRows = (model: Model, rowScope: RowScope, query: Query) => CompoundRows | undefined

const MAX_SCOPES_PER_QUERY = 8

function cachedByScope(find: FindRows): FindRows {
  const foundByScope = weakCached((_: Query) => new BoundedMap<string, { rows?: CompoundRows }>(MAX_SCOPES_PER_QUERY))
  return (model, rowScope, query) => {
    const scope = rowScope.all ? '' : JSON.stringify(rowScope)
    const found = foundByScope(query)
    const existing = found.get(scope)
    if (existing) return existing.rows
    const rows = find(model, rowScope, query)
    found.set(scope, { rows })
    return rows
  }
}

/** Returns the rows of an index with the matching entities in the order of the query, if there is one. */
export const findCompoundRows = cachedByScope((model, rowScope, query) => {
  const order = readSortField(query)
  const values = order === undefined ? undefined : readKnownValues(rowScope, query)
  if (!values?.size) return
  const [index] = model.compoundIndexes
    .filter((one) => one.state === 'ready' && one.order === order && one.equal.every((part) => values.has(part)))
    .sort((one, other) => other.equal.length - one.equal.length)
  const found = index ?? (order === null ? findFieldIndex(model, values) : undefined)
  return found && toCompoundRows(model, found, values, rowScope, query, query.order[0]!.target)
})

/** Returns the index of one of the fields with a known value. */
function findFieldIndex({ fields }: Model, values: KnownValues): CompoundIndex | undefined {
  const field = fields.find((one) => values.has(one.number) && isIndexed(one))
  return field && { ...field.index!, number: field.number, equal: [field.number], order: null }
}

/** Returns the rows of a compound index that can count the matching entities, if there is one. */
export const findCountedRows = cachedByScope((model, rowScope, query) => {
  if (!model.compoundIndexes.length || query.search !== undefined) return
  const values = readKnownValues(rowScope, query)
  if (!values) return
  for (const index of model.compoundIndexes) {
    if (index.state !== 'ready' || !index.equal.every((part) => values.has(part))) continue
    const target = query.conditions.find(
      ({ target }) => target.at === 'field' && target.field.number === index.order,
    )?.target
    const rows = toCompoundRows(model, index, values, rowScope, query, target)
    if (!rows.rest) return rows
  }
})

/** Returns the rows of a compound index that a page in order of time can sort, if there is one. */
export function findRowsToSort(model: Model, rowScope: RowScope, query: Query): CompoundRows | undefined {
  if (readSortField(query) !== null) return
  const rows = findCountedRows(model, rowScope, query)
  return rows?.index.order === null || rows?.without ? undefined : rows
}

function toCompoundRows(
  model: Model,
  index: CompoundIndex,
  values: KnownValues,
  rowScope: RowScope,
  { conditions }: Pick<Query, 'conditions'>,
  sortedBy: Target | undefined,
): CompoundRows {
  const used = index.equal.map((part) => values.get(part)!)
  const ranges = conditions.filter((one) => sortedBy && isAbout(sortedBy, one) && one.is !== 'not in')
  const covered = new Set<unknown>([...used.map(({ by }) => by), ...ranges])
  const scope = scopeValues(rowScope)
  const isScopeCovered = scope?.every(([part]) => index.equal.includes(part))
  const left = conditions.filter((one) => !covered.has(one))
  const rest = [...(isScopeCovered ? [] : scopeSql(rowScope)), ...left.map(conditionSql)]
  const keys = used.map(({ value }) => value)
  const field = model.fields.find(({ number }) => number === index.number)
  const at = (isWithout: boolean) =>
    field
      ? fragment("i.field = ? and i.path = '' and i.value = ?", field.number, keys[0]!)
      : fragment('i.field = ? and i.path = ?', index.number, toCompoundPath(keys, isWithout))
  const column = index.order === null ? 'i.created' : 'i.value'
  return {
    index,
    usedIndex: field?.index ?? index,
    where: and([at(false), ...ranges.map((one) => comparisonSql(column, one as Predicate))]),
    at: ranges.every(isRange) ? at(false) : undefined,
    without: index.order === null || ranges.length ? undefined : at(true),
    left,
    rest: rest.length ? and(rest) : undefined,
  }
}

/** Tells whether the values that meet a condition are consecutive. */
const isRange = (condition: Condition) =>
  condition.is === 'between' || (condition.is === 'in' && condition.values.length === 1)

/** Returns the best compound index for a query, unless the index of one field or column serves it as well. */
export function adviseCompoundIndex(rowScope: RowScope, query: Query): CompoundParts | undefined {
  const order = readSortField(query)
  if (order === undefined) return
  return toUsefulParts(readKnownValues(rowScope, query), order)
}

/** Returns the compound index that could count the matching entities. */
export function adviseCountedIndex(rowScope: RowScope, query: Query): CompoundParts | undefined {
  const values = readKnownValues(rowScope, query)
  const others = query.conditions.filter((one) => !values?.values().some(({ by }) => by === one))
  const [{ target, is } = {}] = others
  if (others.length > 1) return
  if (!others.length) return toUsefulParts(values, null)
  if (is === 'between' && target?.at === 'field' && target.single && !isNeverIndexed(target.field))
    return toUsefulParts(values, target.field.number)
}

function toUsefulParts(values: KnownValues | undefined, order: number | null): CompoundParts | undefined {
  const equal = [...(values?.keys() ?? [])].filter((part) => part !== order)
  // Existing indexes serve one field in order of time, and owners alone.
  const isUseful =
    equal.length + (order === null ? 0 : 1) > 1 && [...equal, order].some((part) => typeof part === 'number')
  return isUseful && equal.length ? { equal, order } : undefined
}

const MAX_SKIPPED_ROWS = 10_000
/** The indexes whose last page continued with entities that lack a value of the sort field. */
const recentlyExhausted = new WeakSet<CompoundRows['index']>()
/** How many pages of rows are tried when conditions remain to be checked. */
const TRIED_PAGES = 4

/**
 * Returns a page of the rows of a compound index: the columns of the entities, then their sort values. Returns undefined when
 * too few of the first rows match, or when the page begins far from the first.
 */
export async function readCompoundRows(
  { db, columns, query, index, where, without, rest }: FindRequest & CompoundRows,
  { limit, skip, position }: PageWindow,
): Promise<unknown[][] | undefined> {
  if (skip > MAX_SKIPPED_ROWS) return
  const direction = query.order[0]!.descending ? 'desc' : 'asc'
  const sign = query.order[0]!.descending ? '<' : '>'
  const isSorted = index.order !== null
  const sortBy = (names: string[]) => names.map((name) => `${name} ${direction}`).join(', ')
  const read = (rows: SqlFragment, isWithout: boolean, limit: number, skip: number, after: SortPosition = []) => {
    const by = isSorted && !isWithout ? ['i.value', 'i.created', 'i.entity'] : ['i.created', 'i.entity']
    const past = after.length
      ? [fragment(`(${by.join(', ')}) ${sign} (${by.map(() => '?').join(', ')})`, ...after)]
      : []
    const { sql, params } = and([...past, rows])
    const ordered = `from entity_index i where ${sql} order by ${sortBy(by)} limit ? offset ?`
    if (rest) return readFirstMatching(ordered, params, limit, skip)
    // No join, because PostgreSQL would reverse it when it expects few rows.
    const selected = columns.map((column) => lookUp(column, 'i.entity'))
    const terms = [...(isSorted ? [isWithout ? 'null' : 'i.value'] : []), 'i.created', 'i.entity']
    return db.query(`select ${[...selected, ...terms].join(', ')} ${ordered}`, [...params, limit, skip])
  }
  const readFirstMatching = (ordered: string, params: unknown[], limit: number, skip: number) => {
    const terms = [...(isSorted ? ['n.value'] : []), 'n.created', 'n.seq']
    const rows = `select i.value as value, i.created as created, i.entity as seq ${ordered}`
    const matching = `select n.value, n.created, n.seq from (${rows}) as n cross join entities e
      where e.seq = n.seq and ${rest!.sql} order by ${sortBy(terms)} limit ? offset ?`
    // The entities are looked up after the sort, which keeps its rows short.
    const selected = columns.map((column) => lookUp(column, 'n.seq'))
    return db.query(`select ${[...selected, ...terms].join(', ')} from (${matching}) as n order by ${sortBy(terms)}`, [
      ...params,
      TRIED_PAGES * (limit + skip),
      0,
      ...rest!.params,
      limit,
      skip,
    ])
  }
  if (rest) {
    const page = position?.[0] === null ? [] : await read(where, false, limit, skip, position)
    return page.length === limit ? page : undefined
  }
  if (isSorted && position?.[0] === null) return without ? read(without, true, limit, skip, position.slice(1)) : []
  // Both statements share one message to PostgreSQL.
  const mayEnd = without && !skip && recentlyExhausted.has(index) && read(without, true, limit, 0)
  const [page, others] = await Promise.all([read(where, false, limit, skip, position), mayEnd])
  if (page.length === limit || !without) {
    recentlyExhausted.delete(index)
    return page
  }
  recentlyExhausted.add(index)
  if (others) return [...page, ...others.slice(0, limit - page.length)]
  const passed = page.length || !skip ? 0 : skip - (await countRowsAt(where))
  return [...page, ...(await read(without, true, limit - page.length, passed))]

  async function countRowsAt({ sql, params }: SqlFragment) {
    const [row] = await db.query(`select count(*) from entity_index i where ${sql}`, params)
    return Number(row![0])
  }
}

/** Returns the SQL that reads a column of the table `e` by number; other columns stay as they are. */
function lookUp(column: string, seq: string) {
  if (column === 'e.seq') return seq
  return /\be\./.test(column) ? `(select ${column} from entities e where e.seq = ${seq})` : column
}

/** Returns a page of the rows of a compound index in order of time, like `readCompoundRows`, or undefined when they are many. */
export async function readSortedByTime(
  { db, columns, query, where }: FindRequest & CompoundRows,
  { limit, skip, position }: PageWindow,
): Promise<unknown[][] | undefined> {
  if ((await estimateRows(db, 'entity_index i', where, thresholds.sortedByTime)) === thresholds.sortedByTime) return
  const { descending } = query.order[0]!
  const past = position ? [fragment(`(i.created, i.entity) ${descending ? '<' : '>'} (?, ?)`, ...position)] : []
  const { sql, params } = and([...past, where])
  const order = ['created', 'seq'].map((column) => `n.${column} ${descending ? 'desc' : 'asc'}`).join(', ')
  const index = `select i.created as created, i.entity as seq from entity_index i where ${sql}`
  const sorted = `select n.created, n.seq from (${index}) as n order by ${order} limit ? offset ?`
  const selected = columns.map((column) => lookUp(column, 'n.seq'))
  return db.query(`select ${[...selected, 'n.created', 'n.seq'].join(', ')} from (${sorted}) as n order by ${order}`, [
    ...params,
    limit,
    skip,
  ])
}
