import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import { and, fragment, oneOf, type SqlFragment } from '../store/sql-fragments'
import type { RangeSource } from './ranges'
import { conditionSql, type IndexCondition, indexWhere, isIdLookup, scopeSql } from './sql-conditions'
import type { Condition } from './target'

/** The rows that a statement scans, and the conditions that they already meet. */
export type Scan = {
  by: Driver
  from: string
  /** The parameters of `from`. */
  fromParams?: unknown[]
  where: SqlFragment
  covered: Condition[]
  time: [created: string, seq: string]
  /** The full-text expression that leads to the rows. */
  search?: string
}

/** What leads to the rows. */
export type Driver = 'time' | 'value' | 'values' | 'order' | 'words'

/** Returns a scan of all entities of a blueprint. */
export const fullScan = (model: Model): Scan => ({
  by: 'time',
  from: 'entities e',
  where: fragment('e.blueprint = ?', model.code),
  covered: [],
  time: ['e.created', 'e.seq'],
})

const INDEX_TABLE = 'entity_index i'
const INDEX_WITH_ENTITIES = 'entity_index i join entities e on e.seq = i.entity'

/** Returns whether these rows have the table of entities (`e`). */
export const hasEntities = (from: string) => from !== INDEX_TABLE

/** Returns a scan of the entities with one value, in order of time. */
export const indexScan = (condition: IndexCondition): Scan => ({
  by: 'value',
  from: INDEX_WITH_ENTITIES,
  where: indexWhere(condition),
  covered: [condition],
  time: ['i.created', 'i.entity'],
})

/** Returns a scan of the entities that contain the words. */
export const textScan = (model: Model, search: string): Scan => ({
  ...fullScan(model),
  by: 'words',
  search,
  where: and([entityHasWordsSql(search), isOfBlueprintSql(model)]),
})

/** Returns a scan of those of the given entities that are of the blueprint. */
export const numberScan = (model: Model, entities: number[]): Scan => ({
  ...fullScan(model),
  by: 'values',
  where: and([oneOf('e.seq', entities), isOfBlueprintSql(model)]),
})

/** As an expression, so that SQLite looks up the numbers instead of reading the index of all of the blueprint's entities. */
export const isOfBlueprintSql = (model: Model) => fragment(`e.blueprint || '' = ?`, model.code)

/** Returns a scan of the entities that contain the words, with the rank of each. */
export const rankedScan = (model: Model, search: string): Scan => ({
  ...fullScan(model),
  by: 'words',
  from: `${SEARCH_WORDS_TABLE} join entities e on e.seq = w.rowid`,
  where: and([matchSql(search), fullScan(model).where]),
})

/** The words of each entity. */
export const SEARCH_WORDS_TABLE = 'search_words w'
/** Returns the SQL for whether a row of `SEARCH_WORDS_TABLE` contains the words. */
export const matchSql = (search: string) => (search ? fragment('w.words match ?', search) : fragment('1 = 0'))

/**
 * Returns the SQL for whether an entity (`e`) contains the words. A scan in slices limits it to the numbers of the
 * slice, because each statement looks up the words once.
 */
export function entityHasWordsSql(search: string, from?: number, to?: number): SqlFragment {
  const idRange = from === undefined ? [] : [fragment('w.rowid >= ? and w.rowid <= ?', from, to)]
  const { sql, params } = and([matchSql(search), ...idRange])
  return fragment(`e.seq in (select w.rowid from ${SEARCH_WORDS_TABLE} where ${sql})`, ...params)
}

/** Returns a scan of the entities that meet a condition, each once, in no particular order. */
export function indexLookup(model: Model, condition: IndexCondition): Scan {
  const { sql, params } = indexWhere(condition)
  return {
    ...fullScan(model),
    by: 'values',
    where: fragment(`e.seq in (select i.entity from entity_index i where ${sql})`, ...params),
    covered: [condition],
  }
}

const INDEXED_COLUMNS = ['e.identifier', 'e.created', 'e.updated']

/** Returns whether a condition is about an indexed column of `entities`. */
export const isColumnCondition = (condition: Condition) => {
  const { target, is } = condition
  const isIndexed = target.at === 'column' && INDEXED_COLUMNS.includes(target.column)
  return isIdLookup(condition) || (isIndexed && (is === 'in' || is === 'between'))
}

/**
 * Returns a scan of the entities that meet an SQL condition, found by an index of `entities`, in no particular order.
 */
export function subqueryScan(model: Model, where: SqlFragment, covered: Condition[]): Scan {
  const full = fullScan(model)
  const { sql, params } = and([full.where, where])
  const subquery = fragment(`e.seq in (select e.seq from entities e where ${sql})`, ...params)
  // Without the blueprint in the outer statement, the database can use no other index of entities.
  return { ...full, by: 'values', where: subquery, covered }
}

/**
 * Returns the SQL for the entities of other users, as ranges of the index: before and after the user, and without one.
 */
export const othersSql = (model: Model, user: string): SqlFragment[] =>
  [fragment('e."user" < ?', user), fragment('e."user" > ?', user), fragment('e."user" is null')].map((whose) =>
    and([fullScan(model).where, whose]),
  )

/** Returns the SQL for all conditions on the rows of a scan, except those that the scan covers. */
export function filterSql(scan: Scan, rowScope: RowScope, conditions: Condition[]): SqlFragment {
  const remaining = conditions.filter((one) => !scan.covered.includes(one)).map(conditionSql)
  return and([scan.where, ...scopeSql(rowScope), ...remaining])
}

/** How to read a scan in slices: its rows, their order, and the SQL for those that match. */
export type ScanPassage = RangeSource & { matching: SqlFragment; entity: string }

/** Returns how to read a scan in slices. */
export function toPassage(model: Model, scan: Scan, rowScope: RowScope, conditions: Condition[]): ScanPassage {
  if (scan.search !== undefined) {
    const { from, where } = rankedScan(model, scan.search)
    const matching = and([where, ...scopeSql(rowScope), ...conditions.map(conditionSql)])
    return { from, where: matchSql(scan.search), matching, by: ['w.rowid'], entity: 'e.seq' }
  }
  const { from, where: matching } = withoutJoin(scan, rowScope, conditions)
  // Without the conditions that need the entity; otherwise finding the end of a slice would cost as much as reading it.
  const where = from === INDEX_TABLE ? scan.where : withoutJoin(scan, rowScope, []).where
  return { from, where, matching, by: scan.time, entity: scan.time[1] }
}

/**
 * Returns the rows of a scan without a join, because PostgreSQL may scan the whole index for each entity when it
 * expects few rows.
 */
export function withoutJoin(
  scan: Scan,
  rowScope: RowScope,
  conditions: Condition[],
): { from: string; where: SqlFragment } {
  if (scan.from !== INDEX_WITH_ENTITIES) return { from: scan.from, where: filterSql(scan, rowScope, conditions) }
  const ownEntity = fragment('e.seq = i.entity')
  const remaining = filterSql({ ...scan, where: ownEntity }, rowScope, conditions)
  const met =
    remaining.sql === ownEntity.sql
      ? []
      : [fragment(`(select 1 from entities e where ${remaining.sql}) is not null`, ...remaining.params)]
  return { from: INDEX_TABLE, where: and([scan.where, ...met]) }
}
