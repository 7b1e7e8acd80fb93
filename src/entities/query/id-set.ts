import { textKey } from '../../blueprints/fields/index-key-codec'
import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import type { Db } from '../../storage/port'
import { and, fragment, type SqlFragment } from '../store/sql-fragments'
import { estimateRows, thresholds } from './cardinality'
import type { Query } from './query-parser'
import { splitIntoRanges } from './ranges'
import { fullScan, matchSql, SEARCH_WORDS_TABLE } from './scans'
import { comparisonSql, conditionSql, type FieldTarget, type IndexCondition, scopeSql } from './sql-conditions'
import { type Condition, hasLongBound, isText, type Predicate, type Target, targetKey } from './target'

const IDS_PER_PAGE = 1 << 15 // entity numbers; a page takes 4 KiB

/**
 * A set of entities, identified by their numbers: a bit for each, in pages. On PostgreSQL, tenants share a sequence, so
 * the numbers of one tenant can be few and far apart.
 */
export class IdSet {
  #pages = new Map<number, Uint32Array>()
  /** The page that was used last; numbers mostly come in runs. */
  #page: Uint32Array | undefined
  #pageNumber = -1
  size = 0

  static of(entities: Iterable<number>) {
    const ids = new IdSet()
    for (const id of entities) ids.add(id)
    return ids
  }

  has(entity: number): boolean {
    const page = this.#findPage(entity)
    return page !== undefined && (page[(entity % IDS_PER_PAGE) >>> 5]! & (1 << (entity & 31))) !== 0
  }

  add(entity: number) {
    if (this.has(entity)) return
    this.#page ??= new Uint32Array(IDS_PER_PAGE / 32)
    this.#pages.set(this.#pageNumber, this.#page)
    this.#page[(entity % IDS_PER_PAGE) >>> 5]! |= 1 << (entity & 31)
    this.size++
  }

  delete(entity: number) {
    if (!this.has(entity)) return
    this.#page![(entity % IDS_PER_PAGE) >>> 5]! &= ~(1 << (entity & 31))
    this.size--
  }

  copy() {
    const copy = new IdSet()
    for (const [number, page] of this.#pages) copy.#pages.set(number, page.slice())
    copy.size = this.size
    return copy
  }

  /** Yields the numbers in ascending order. */
  *[Symbol.iterator]() {
    for (const number of [...this.#pages.keys()].sort((one, other) => one - other))
      for (const [at, word] of this.#pages.get(number)!.entries())
        for (let rest = word; rest; rest &= rest - 1)
          yield number * IDS_PER_PAGE + at * 32 + 31 - Math.clz32(rest & -rest)
  }

  /** Yields the numbers in descending order. */
  *descending() {
    for (const number of [...this.#pages.keys()].sort((one, other) => other - one)) {
      const page = this.#pages.get(number)!
      for (let at = page.length - 1; at >= 0; at--)
        for (let rest = page[at]!; rest; ) {
          const bit = 31 - Math.clz32(rest)
          yield number * IDS_PER_PAGE + at * 32 + bit
          rest &= ~(1 << bit)
        }
    }
  }

  #findPage(entity: number) {
    const number = Math.floor(entity / IDS_PER_PAGE)
    if (number !== this.#pageNumber) {
      this.#pageNumber = number
      this.#page = this.#pages.get(number)
    }
    return this.#page
  }
}

/**
 * Rows of an index in the order of `by`, which is unique; `entity` is the column with the entity's number. The index
 * leads to the rows that meet `where`; the `test` is checked on each of them.
 */
export type IndexSource = { from: string; where: SqlFragment; test?: SqlFragment; entity: string; by: string[] }

export const VALUE_ORDER = ['i.value', 'i.created', 'i.entity']
const TIME_ORDER = ['e.created', 'e.seq']

const fieldSource = ({ field, path }: FieldTarget, where: SqlFragment[], by: string[]): IndexSource => ({
  from: 'entity_index i',
  where: and([fragment('i.field = ? and i.path = ?', field.number, path), ...where]),
  entity: 'i.entity',
  by,
})

const columnSource = (model: Model, where: SqlFragment[], by: string[]): IndexSource => {
  const scan = fullScan(model)
  return { from: scan.from, where: and([scan.where, ...where]), entity: 'e.seq', by }
}

/** The columns of the indexes of `entities`, after the blueprint, with which each begins. */
const COLUMN_ORDERS: Partial<Record<string, string[]>> = {
  'e.created': TIME_ORDER,
  'e.identifier': ['e.identifier'],
  ...Object.fromEntries(['e.updated', 'e."user"', 'e.workspace'].map((column) => [column, [column, ...TIME_ORDER]])),
}

/** Returns the index rows of the entities that meet a test, or undefined when no index has them. */
function targetSource(model: Model, target: Target, test: SqlFragment[]): IndexSource | undefined {
  if (target.at === 'field') return target.indexed ? fieldSource(target, test, VALUE_ORDER) : undefined
  const by = COLUMN_ORDERS[target.column]
  return by && columnSource(model, test, by)
}

/**
 * Returns the index rows of the entities that have a value of the target, by this value and then by time, limited to
 * values that meet the conditions about the target. Returns undefined when no index has this order.
 */
export function orderedSource(model: Model, target: Target, conditions: Condition[] = [], more: SqlFragment[] = []) {
  const at = target.at === 'field' ? 'i.value' : target.column
  const own = conditions.filter((one) => isAbout(target, one)).map((one) => comparisonSql(at, one as Predicate))
  if (target.at === 'field') return target.single ? targetSource(model, target, own) : undefined
  return targetSource(model, target, [fragment(`${at} is not null`), ...own, ...more])
}

/** Returns whether a condition is about the value of the target. */
export const isAbout = (target: Target, condition: Condition) =>
  targetKey(condition.target) === targetKey(target) &&
  condition.is !== 'present' &&
  condition.is !== 'absent' &&
  !hasLongBound(condition)

/** Returns the index rows of the entities with one value, in order of time. */
export const timeOrderedSource = ({ target, ...test }: IndexCondition): IndexSource =>
  fieldSource(target, [comparisonSql('i.value', test)], ['i.created', 'i.entity'])

/** Returns the index rows of all entities that meet a condition, or with `not` of all that do not. */
function conditionSources(model: Model, condition: Condition): { sources: IndexSource[]; not: boolean } {
  const { target, ...test } = condition
  const at = target.at === 'column' ? target.column : 'i.value'
  const isInIndex = targetSource(model, target, []) !== undefined
  const whether = test.is === 'present' || test.is === 'absent'
  // An empty list has no row in the index.
  const isEmptyListPossible = whether && target.at === 'field' && !target.single && !target.path
  if (!isInIndex || isEmptyListPossible)
    return { sources: [{ ...columnSource(model, [], TIME_ORDER), test: conditionSql(condition) }], not: false }
  if (whether)
    return { sources: [targetSource(model, target, [fragment(`${at} is not null`)])!], not: test.is === 'absent' }
  if (test.is === 'between') return { sources: [targetSource(model, target, [comparisonSql(at, test)])!], not: false }
  const sources = [...new Set(test.values)].map((value) => {
    const same = targetSource(model, target, [fragment(`${at} = ?`, value)])!
    return { ...same, by: same.by.length > 1 ? same.by.slice(1) : same.by }
  })
  return { sources, not: test.is === 'not in' }
}

/** Returns the index rows of all entities in the row scope, or with `not` of all others if they are few. */
async function scopeSources(db: Db, model: Model, rowScope: Extract<RowScope, { all: false }>) {
  const { user, workspace } = rowScope
  if (user !== undefined && workspace === undefined) {
    const others = ['< ?', '> ?', 'is null'].map((side) =>
      columnSource(
        model,
        [fragment(`e."user" ${side}`, ...(side === 'is null' ? [] : [user]))],
        ['e."user"', ...TIME_ORDER],
      ),
    )
    if ((await estimateSize(db, others, thresholds.few)) < thresholds.few) return { sources: others, not: true }
  }
  return { sources: sourcesInScope(model, rowScope), not: false }
}

/** Returns the number of rows that the indexes lead to, at most about `limit`; tests are not applied. */
async function estimateSize(db: Db, sources: IndexSource[], limit: number) {
  let size = 0
  for (const { from, where } of sources) size += size < limit ? await estimateRows(db, from, where, limit) : 0
  return size
}

/** Returns the sources whose union is the row scope. */
const sourcesInScope = (model: Model, { user, within, workspace }: Extract<RowScope, { all: false }>): IndexSource[] =>
  [{ user, within }, { workspace }]
    .filter(({ user, workspace }: { user?: string; workspace?: string }) => (user ?? workspace) !== undefined)
    .map((one) => columnSource(model, scopeSql({ all: false, ...one }), TIME_ORDER))

/**
 * Yields the entities of a source in its order or reversed, in slices that grow from `first` rows. With a test, it
 * reads the entity of each row, so the slices are smaller.
 */
export async function* scanIds(
  db: Db,
  { from, where, test, entity, by }: IndexSource,
  descending = false,
  first = thresholds.slice,
): AsyncGenerator<number[]> {
  const order = by.map((one) => `${one} ${descending ? 'desc' : 'asc'}`).join(', ')
  const size = test ? thresholds.rows : thresholds.slice
  for await (const { conditions } of splitIntoRanges(db, { from, where, by, descending, size, first })) {
    const { sql, params } = and([...conditions, where, ...(test ? [test] : [])])
    const rows = `select ${entity} as seq from ${from} where ${sql} order by ${order}`
    // As one text, because a row per entity would take more time and memory than everything else.
    const [joined] = await db.query(`select group_concat(cast(n.seq as text), ',') from (${rows}) as n`, params)
    yield JSON.parse(`[${joined?.[0] ?? ''}]`)
  }
}

/** Sets are counted up to this size to find the smallest. */
const MAX_COMPARED_SIZE = 20_000

/**
 * Returns the entities that meet all conditions and contain the words, by the indexes alone: the smallest set,
 * intersected with the next, and so on. Once the result is small (`thresholds.sorted`), it may contain entities that
 * fail the remaining conditions. Words are never left out, because the other conditions are what readers check again.
 */
export async function findMatchingIds(
  db: Db,
  model: Model,
  rowScope: RowScope,
  { conditions, search }: Pick<Query, 'conditions' | 'search'>,
): Promise<IdSet> {
  const sets = conditions.flatMap((condition, at) => {
    const { target } = condition
    // All conditions about one value form one set.
    const leading = conditions.findIndex((one) => isAbout(target, one) && one.is !== 'not in')
    const source = leading >= 0 && isAbout(target, condition) ? orderedSource(model, target, conditions) : undefined
    if (!source) return conditionSources(model, condition)
    return leading === at ? { sources: [source], not: false } : []
  })
  if (!rowScope.all) sets.push(await scopeSources(db, model, rowScope))
  const words = search === undefined ? [] : [{ sources: [wordSource(search)], not: false }]
  if (!words.length && sets.every(({ not }) => not))
    sets.push({ sources: [columnSource(model, [], TIME_ORDER)], not: false })
  const sized = []
  for (const set of sets) sized.push({ ...set, size: await estimateSize(db, set.sources, MAX_COMPARED_SIZE) })
  sized.sort((one, other) => Number(one.not) - Number(other.not) || one.size - other.size)
  const [smallest, ...others] = [...words, ...sized]
  let ids = new IdSet()
  for (const source of smallest!.sources)
    for await (const entities of scanIds(db, source)) for (const id of entities) ids.add(id)
  for (const { sources, not } of others) {
    if (ids.size <= thresholds.sorted) break
    ids = await (not ? subtract : intersect)(db, ids, sources)
  }
  return ids
}

/** Returns the rows of the entities that contain the words. */
const wordSource = (search: string): IndexSource => ({
  from: SEARCH_WORDS_TABLE,
  where: matchSql(search),
  entity: 'w.rowid',
  by: ['w.rowid'],
})

async function intersect(db: Db, ids: IdSet, sources: IndexSource[]): Promise<IdSet> {
  const both = new IdSet()
  for (const source of sources)
    for await (const entities of scanIds(db, source)) for (const id of entities) if (ids.has(id)) both.add(id)
  return both
}

async function subtract(db: Db, ids: IdSet, sources: IndexSource[]): Promise<IdSet> {
  const remaining = ids.copy()
  for (const source of sources)
    for await (const entities of scanIds(db, source)) for (const id of entities) remaining.delete(id)
  return remaining
}

/** Returns the entities of a set that have the given value of the target. */
export const withValue = (db: Db, model: Model, ids: IdSet, target: Target, value: string | number) =>
  intersect(
    db,
    ids,
    conditionSources(model, { target, is: 'in', values: [isText(target) ? textKey(`${value}`) : value] }).sources,
  )

/** Returns the entities of a set that have no value of the target. */
export const withoutValue = (db: Db, model: Model, ids: IdSet, target: Target) => {
  const having = orderedSource(model, target)
  return subtract(db, ids, having ? [having] : [])
}
