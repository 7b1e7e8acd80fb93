import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import type { Db } from '../../storage/port'
import { and, type SqlFragment } from '../store/sql-fragments'
import { chooseTimeOrderedScan } from './access-path'
import { estimateRows, thresholds } from './cardinality'
import { findMatchingIds, VALUE_ORDER } from './id-set'
import type { Query } from './query-parser'
import { countRows, splitIntoRanges } from './ranges'
import { fullScan, othersSql, type Scan, toPassage } from './scans'
import { type IndexCondition, indexWhere, isIndexCondition } from './sql-conditions'
import type { Condition } from './target'

/** How many entities match. */
export async function count(db: Db, model: Model, rowScope: RowScope, query: Query): Promise<number> {
  const { conditions, search } = query
  if (search === undefined && !rowScope.all && rowScope.user !== undefined && rowScope.workspace === undefined) {
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

/** Those of others, where nearly all are the user's own: then the index alone counts all, and these are taken away. */
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

/** What is true of all those of which a condition is not; nothing where the index can't tell. */
function toOpposite(condition: Condition): IndexCondition | undefined {
  const { target } = condition
  if (target.at !== 'field' || !target.indexed) return
  if (condition.is === 'absent' && target.single) return { target, is: 'between', from: { value: '', open: false } }
  if (condition.is === 'not in' && condition.values.length) return { target, is: 'in', values: condition.values }
}

/** The index alone can tell; what has several values is in it several times. */
async function countByIndex(db: Db, model: Model, condition: IndexCondition) {
  const equal = condition.is === 'in' && condition.values.length === 1
  if (!equal && !condition.target.single) return (await findMatchingIds(db, model, { all: true }, [condition])).size
  const by = equal ? VALUE_ORDER.slice(1) : VALUE_ORDER
  return countRows(db, { from: 'entity_index i', where: indexWhere(condition), by })
}

/** How many entities match, all of them: a slice after the other, where those are not known to be few. */
async function countScan(db: Db, model: Model, scan: Scan, rowScope: RowScope, conditions: Condition[]) {
  const { matching, ...rows } = toPassage(model, scan, rowScope, conditions)
  const countOf = async ({ sql, params }: SqlFragment) =>
    Number((await db.query(`select count(*) from ${rows.from} where ${sql}`, params))[0]![0])
  if (scan.by === 'values') return countOf(matching)
  let counted = 0
  for await (const { conditions } of splitIntoRanges(db, rows)) counted += await countOf(and([matching, ...conditions]))
  return counted
}
