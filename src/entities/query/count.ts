import type { Model } from '../../blueprints/model'
import { isOfOneOwner, type RowScope } from '../../blueprints/permissions'
import type { Db } from '../../storage/port'
import { countRows as countInTable } from '../columns/column-queries'
import { answerFromColumns, requestColumns } from '../columns/column-reads'
import { noteFieldUse, noteIndexUse } from '../indexing/index-demand'
import { and, type SqlFragment } from '../store/sql-fragments'
import { chooseTimeOrderedScan } from './access-path'
import { estimateRows, thresholds } from './cardinality'
import { type CompoundRows, findCountedRows } from './compound-index'
import { findMatchingIds, VALUE_ORDER } from './id-set'
import { requestCountedIndex } from './index-advice'
import { countByMarks } from './index-marks'
import type { Query } from './query-parser'
import { countFewRows, countRows, splitIntoRanges } from './ranges'
import { fullScan, othersSql, type Scan, toPassage } from './scans'
import { type IndexCondition, indexWhere, isIndexCondition } from './sql-conditions'
import type { Condition } from './target'

/** Returns how many entities match. */
export async function count(db: Db, model: Model, rowScope: RowScope, query: Query): Promise<number> {
  const { conditions, search } = query
  for (const { target } of conditions) if (target.at === 'field') noteFieldUse(model, target.field)
  const counted = findCountedRows(model, rowScope, query)
  if (counted) noteIndexUse(model, counted.usedIndex, counted.index.number)
  else await requestCountedIndex(db, model, rowScope, query)
  const inMemory = await answerFromColumns(db, model, rowScope, query, (table, maxRows) =>
    countInTable(table, { rowScope, conditions }, maxRows),
  )
  if (inMemory !== undefined) return inMemory
  if (counted) return countCompoundRows(db, model, counted, () => requestColumns(db, model, rowScope, query))
  if (search === undefined && !rowScope.all && rowScope.user !== undefined && isOfOneOwner(rowScope)) {
    const others = await countOthers(db, model, rowScope.user, conditions)
    if (others !== undefined) return (await count(db, model, { all: true }, query)) - others
  }
  const [condition, ...more] = conditions
  if (rowScope.all && condition && !more.length && search === undefined) {
    if (isIndexCondition(condition)) return countByIndex(db, model, condition)
    const opposite = toOpposite(condition)
    if (opposite)
      return (await countScan(db, model, fullScan(model), rowScope, [])) - (await countByIndex(db, model, opposite))
  }
  return countScan(db, model, await chooseTimeOrderedScan(db, model, rowScope, query), rowScope, conditions)
}

/** Counts by a compound index alone. Calls `onManyRead` when that reads many rows. */
async function countCompoundRows(db: Db, model: Model, { at, where, without }: CompoundRows, onManyRead: () => void) {
  const countAll = async (where: SqlFragment) => {
    const count = await countRows(db, { from: 'entity_index i', where, by: VALUE_ORDER })
    if (count > thresholds.few) onManyRead()
    return count
  }
  const few = await countFewRows(db, 'entity_index i', where, thresholds.marked)
  const sorted = few ?? (at && (await countByMarks(db, model, at, where))) ?? (await countAll(where))
  return without ? sorted + (await countAll(without)) : sorted
}

/**
 * Counts the matching entities of other users, when nearly all entities are the user's own: the index alone counts all,
 * and these are subtracted. Returns undefined when others have many.
 */
async function countOthers(db: Db, model: Model, user: string, conditions: Condition[]): Promise<number | undefined> {
  const sides = othersSql(model, user)
  let size = 0
  for (const side of sides) size += size < thresholds.few ? await estimateRows(db, 'entities e', side) : 0
  if (size >= thresholds.few) return
  let counted = 0
  for (const side of sides)
    counted += await countScan(db, model, { ...fullScan(model), where: side }, { all: true }, conditions)
  return counted
}

/** Returns the opposite of a condition, or undefined when the index cannot answer it. */
function toOpposite(condition: Condition): IndexCondition | undefined {
  const { target } = condition
  if (target.at !== 'field' || !target.indexed) return
  if (condition.is === 'absent' && target.single) return { target, is: 'between', from: { value: '', open: false } }
  if (condition.is === 'not in' && condition.values.length) return { target, is: 'in', values: condition.values }
}

/** Counts by the index alone. An entity with several values is in it several times. */
async function countByIndex(db: Db, model: Model, condition: IndexCondition) {
  const equal = condition.is === 'in' && condition.values.length === 1
  if (!equal && !condition.target.single)
    return (await findMatchingIds(db, model, { all: true }, { conditions: [condition] })).size
  const by = equal ? VALUE_ORDER.slice(1) : VALUE_ORDER
  return countRows(db, { from: 'entity_index i', where: indexWhere(condition), by })
}

/** Counts the matching entities of a scan, slice by slice unless they are known to be few. */
async function countScan(db: Db, model: Model, scan: Scan, rowScope: RowScope, conditions: Condition[]) {
  const { matching, ...rows } = toPassage(model, scan, rowScope, conditions)
  const countOf = async ({ sql, params }: SqlFragment) =>
    Number((await db.query(`select count(*) from ${rows.from} where ${sql}`, params))[0]![0])
  if (scan.by === 'values') return countOf(matching)
  let counted = 0
  for await (const { conditions } of splitIntoRanges(db, rows)) counted += await countOf(and([...conditions, matching]))
  return counted
}
