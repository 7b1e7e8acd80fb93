import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import { and, fragment, type SqlFragment } from '../store/sql-fragments'
import type { RangeSource } from './ranges'
import { conditionSql, type IndexCondition, indexWhere, scopeSql } from './sql-conditions'
import type { Condition } from './target'

/** The rows that a statement goes through, and what needs not be asked of them any more. */
export type Scan = {
  by: Driver
  from: string
  /** The values of its question marks. */
  fromParams?: unknown[]
  where: SqlFragment
  covered: Condition[]
  time: [created: string, seq: string]
  /** The words that lead to the rows. */
  search?: string
}

/** What leads to the rows. */
export type Driver = 'time' | 'value' | 'values' | 'order' | 'words'

/** Every entity of the blueprint. */
export const fullScan = (model: Model): Scan => ({
  by: 'time',
  from: 'entities e',
  where: fragment('e.blueprint = ?', model.key),
  covered: [],
  time: ['e.created', 'e.seq'],
})

const INDEX_TABLE = 'entity_index i'
const INDEX_WITH_ENTITIES = 'entity_index i join entities e on e.seq = i.entity'

/** The entities that have one value, in order of time. */
export const indexScan = (condition: IndexCondition): Scan => ({
  by: 'value',
  from: INDEX_WITH_ENTITIES,
  where: indexWhere(condition),
  covered: [condition],
  time: ['i.created', 'i.entity'],
})

/** The entities that have the words. */
export const textScan = (model: Model, search: string): Scan => ({
  ...fullScan(model),
  by: 'words',
  search,
  where: and([entityHasWordsSql(search), fullScan(model).where]),
})

/** The same, with how well each fits. */
export const rankedScan = (model: Model, search: string): Scan => ({
  ...fullScan(model),
  by: 'words',
  from: `${SEARCH_WORDS_TABLE} join entities e on e.seq = w.rowid`,
  where: and([matchSql(search), fullScan(model).where]),
})

/** The words of each entity. */
export const SEARCH_WORDS_TABLE = 'search_words w'
/** Whether a row of `WORDS` has the words. */
export const matchSql = (search: string) => (search ? fragment('w.words match ?', search) : fragment('1 = 0'))

/** The same of an entity; of those with such numbers, for who goes through all in slices: words are looked up once for each. */
export function entityHasWordsSql(search: string, from?: number, to?: number): SqlFragment {
  const idRange = from === undefined ? [] : [fragment('w.rowid >= ? and w.rowid <= ?', from, to)]
  const { sql, params } = and([matchSql(search), ...idRange])
  return fragment(`e.seq in (select w.rowid from ${SEARCH_WORDS_TABLE} where ${sql})`, ...params)
}

/** The entities that meet a condition, each once, in no order. */
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

/** Whether a condition is about a column that an index of the blueprint's entities has. */
export const isColumnCondition = ({ target, is }: Condition) =>
  target.at === 'column' && INDEXED_COLUMNS.includes(target.column) && (is === 'in' || is === 'between')

/** The entities of which something is true that an index of theirs tells, in no order: none else is gone through for that. */
export function subqueryScan(model: Model, where: SqlFragment, covered: Condition[]): Scan {
  const full = fullScan(model)
  const { sql, params } = and([full.where, where])
  const subquery = fragment(`e.seq in (select e.seq from entities e where ${sql})`, ...params)
  // Without the blueprint, no other index of entities is of use, so nobody goes through that.
  return { ...full, by: 'values', where: subquery, covered }
}

/** The entities that are not of a user, by its two sides in the index. */
export const othersSql = (model: Model, user: string): SqlFragment[] =>
  [fragment('e."user" < ?', user), fragment('e."user" > ?', user), fragment('e."user" is null')].map((whose) =>
    and([fullScan(model).where, whose]),
  )

/** What a scan leaves to be asked of each entity. */
export function filterSql(scan: Scan, rowScope: RowScope, conditions: Condition[]): SqlFragment {
  const remaining = conditions.filter((one) => !scan.covered.includes(one)).map(conditionSql)
  return and([scan.where, ...scopeSql(rowScope), ...remaining])
}

/** What a scan can be gone through by in slices: which rows, in which order, and the part of them that matches. */
export type ScanPassage = RangeSource & { matching: SqlFragment; entity: string }

/** How a scan is gone through in slices. */
export function toPassage(model: Model, scan: Scan, rowScope: RowScope, conditions: Condition[]): ScanPassage {
  if (scan.search !== undefined) {
    const { from, where } = rankedScan(model, scan.search)
    const matching = and([where, ...scopeSql(rowScope), ...conditions.map(conditionSql)])
    return { from, where: matchSql(scan.search), matching, by: ['w.rowid'], entity: 'e.seq' }
  }
  const { from, where: matching } = withoutJoin(scan, rowScope, conditions)
  // Without what an entity has to be looked at for, which would make finding the end of a slice as dear as all the rest.
  const where = from === INDEX_TABLE ? scan.where : withoutJoin(scan, rowScope, []).where
  return { from, where, matching, by: scan.time, entity: scan.time[1] }
}

/**
 * What a scan goes through, without a join: where PostgreSQL expects few rows, it may go through all of the index for
 * each entity.
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
