import type { Model } from '../../blueprints/model'
import { isOfOneOwner, type RowScope } from '../../blueprints/permissions'
import type { Db } from '../../storage/port'
import { and, type SqlFragment } from '../store/sql-fragments'
import { estimateRows, thresholds } from './cardinality'
import { isAbout, orderedSource, timeOrderedSource } from './id-set'
import { requestMissingIndexes } from './index-advice'
import type { IndexWalk } from './index-walk'
import { keepKnownTerms } from './known-terms'
import { byCreated, isCreated, isNullable } from './order'
import type { Query } from './query-parser'
import {
  fullScan,
  indexLookup,
  indexScan,
  isColumnCondition,
  matchSql,
  rankedScan,
  type Scan,
  SEARCH_WORDS_TABLE,
  subqueryScan,
  textScan,
} from './scans'
import { conditionSql, type IndexCondition, indexWhere, isIndexCondition, scopeSql } from './sql-conditions'
import type { Condition, Order } from './target'

/** Returns a scan of a query's entities in order of time, which can be read in slices. */
export async function chooseTimeOrderedScan(db: Db, model: Model, rowScope: RowScope, query: Query): Promise<Scan> {
  if (query.search !== undefined) return textScan(model, await keepKnownTerms(db, model, query.search))
  return (await chooseAccessPath(db, model, rowScope, { ...query, ranked: false, order: [byCreated(true)] })).scan
}

/**
 * A condition that was considered as the access path, with the number of index rows that meet it, as far as counted.
 * `reach` stands for the caller's row scope, as a query plan calls it. An `ordered` scan reads its rows by time.
 */
export type Candidate = { condition: Condition | 'reach'; rows: number; scan: Scan; ordered: boolean }

/**
 * How to read a query. With `bounded`, the scan is known to read few rows that do not match, so one statement is
 * enough; otherwise the query is broad, and is read in steps. The first step tries the beginning of `indexWalk`.
 */
export type AccessPath = { scan: Scan; bounded: boolean; indexWalk?: IndexWalk; candidates: Candidate[] }

/** Chooses how to read a query, by the number of rows that meet each of its conditions. */
export async function chooseAccessPath(db: Db, model: Model, rowScope: RowScope, query: Query): Promise<AccessPath> {
  if (query.ranked) return { scan: rankedScan(model, query.search!), bounded: true, candidates: [] }
  const choice = await chooseScan(db, model, rowScope, query)
  const few = choice.candidates.some(({ rows }) => rows < thresholds.few)
  const [cheapest] = choice.candidates
  const isShort = choice.bounded && !cheapest?.ordered && (cheapest?.rows ?? 0) <= thresholds.short
  await requestMissingIndexes(db, model, rowScope, query, { bounded: choice.bounded, few, isShort })
  return { ...choice, scan: choice.scan ?? fullScan(model), indexWalk: chooseWalk(model, rowScope, query, choice) }
}

/** A choice of `chooseScan`. The scan is missing when only an order leads to the rows. */
type ScanChoice = { scan?: Scan; bounded: boolean; candidates: Candidate[] }

/** Returns the index to walk in the requested order; none when the scan is bounded, or for a search. */
function chooseWalk(
  model: Model,
  rowScope: RowScope,
  { conditions, order, search }: Query,
  { scan, bounded }: ScanChoice,
) {
  if (bounded || search !== undefined) return
  const [covered] = scan?.covered ?? []
  if (covered) return { source: timeOrderedSource(covered as IndexCondition), covered: [covered] }
  const { target } = order[0]!
  // Only the index by time knows the owners.
  const single = isCreated(target) && isOfOneOwner(rowScope)
  const source = orderedSource(model, target, conditions, single ? scopeSql(rowScope) : [])
  return (
    source && {
      source,
      covered: conditions.filter((one) => isAbout(target, one)),
      target: isCreated(target) ? undefined : target,
    }
  )
}

/**
 * Chooses the scan of the most selective condition if it has few rows, else one whose rows are in the requested order.
 * Returns no scan when all entities have to be read in the order of the query.
 */
async function chooseScan(db: Db, model: Model, rowScope: RowScope, query: Query): Promise<ScanChoice> {
  const { conditions, order, search } = query
  if (search !== undefined) {
    const rows = await estimateRows(db, SEARCH_WORDS_TABLE, matchSql(await keepKnownTerms(db, model, search)))
    // The scan may be cached, and a longer word may be written meanwhile, so it keeps its prefixes.
    return { scan: textScan(model, search), bounded: rows < thresholds.few, candidates: [] }
  }
  const byTime = order.length === 1 && isCreated(order[0]!.target)
  const indexed = conditions.filter(isIndexCondition)
  const equal = indexed.filter((one) => one.is === 'in' && one.values.length === 1)
  if (byTime && rowScope.all && conditions.length === 1 && equal.length === 1)
    return { scan: indexScan(equal[0]!), bounded: true, candidates: [] }
  const candidates: Candidate[] = []
  for (const condition of indexed) {
    const ordered = byTime && equal.includes(condition)
    const scan = ordered ? indexScan(condition) : indexLookup(model, condition)
    candidates.push({ condition, rows: await estimateRows(db, 'entity_index i', indexWhere(condition)), scan, ordered })
  }
  for (const condition of conditions.filter(isColumnCondition))
    candidates.push({
      condition,
      ...(await estimateSubquery(db, model, conditionSql(condition), [condition])),
      ordered: false,
    })
  if (candidates.length && !rowScope.all) {
    const scopeWhere = and(scopeSql(rowScope))
    const { rows, scan } = await estimateSubquery(db, model, scopeWhere, [])
    candidates.push({ condition: 'reach', rows, scan: byTime ? fullScan(model) : scan, ordered: byTime })
  }
  candidates.sort((one, other) => one.rows - other.rows || Number(other.ordered) - Number(one.ordered))
  const [cheapest] = candidates
  if (cheapest && cheapest.rows < thresholds.few) return { scan: cheapest.scan, bounded: true, candidates }
  const ordered = candidates.find(({ ordered }) => ordered)
  // In the order of an index, no row is read in vain: by time within one owner's scope, or in the whole blueprint by a
  // field that is never null.
  const [{ target }] = order as [Order]
  const coversScope = rowScope.all || (byTime && isOfOneOwner(rowScope))
  const bounded = coversScope && !conditions.length && !isNullable(target) && !!orderedSource(model, target)
  return { scan: ordered?.scan ?? (byTime ? fullScan(model) : undefined), bounded, candidates }
}

async function estimateSubquery(db: Db, model: Model, where: SqlFragment, covered: Condition[]) {
  const scan = subqueryScan(model, where, covered)
  const full = fullScan(model)
  return { scan, rows: await estimateRows(db, full.from, and([full.where, where])) }
}
