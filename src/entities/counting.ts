import type { Model } from '../blueprints/model'
import type { Reach } from '../blueprints/rules'
import type { Db } from '../storage/port'
import { and, type Indexed, indexWhere, isIndexed, type Part } from './conditions'
import { BY_VALUE, membersOf } from './members'
import type { Condition, Query } from './query'
import { countRows, rangesOf } from './ranges'
import { everything, ofOthers, passageOf, type Scan } from './scans'
import { bounds, few } from './sizes'
import { scanOf } from './way'

/** How many entities match. */
export async function count(db: Db, model: Model, reach: Reach, query: Query): Promise<number> {
  const { conditions, search } = query
  if (search === undefined && !reach.all && reach.user !== undefined && reach.workspace === undefined) {
    const others = await countOfOthers(db, model, reach.user, conditions)
    if (others !== undefined) return (await count(db, model, { all: true }, query)) - others
  }
  const [condition, ...more] = conditions
  if (reach.all && condition && !more.length && search === undefined) {
    if (isIndexed(condition)) return countIndexed(db, model, condition)
    const opposite = oppositeOf(condition)
    if (opposite)
      return (await total(db, model, everything(model), reach, [])) - (await countIndexed(db, model, opposite))
  }
  return total(db, model, await scanOf(db, model, reach, query), reach, conditions)
}

/** Those of others, where nearly all are the user's own: then the index alone counts all, and these are taken away. */
async function countOfOthers(db: Db, model: Model, user: string, conditions: Condition[]): Promise<number | undefined> {
  const sides = ofOthers(model, user)
  let size = 0
  for (const side of sides) size += size < bounds.few ? await few(db, 'entities e', side) : 0
  if (size >= bounds.few) return
  let found = 0
  for (const side of sides)
    found += await total(db, model, { ...everything(model), where: side }, { all: true }, conditions)
  return found
}

/** What is true of all those of which a condition is not; nothing where the index can't tell. */
function oppositeOf(condition: Condition): Indexed | undefined {
  const { target } = condition
  if (target.at !== 'field' || !target.indexed) return
  if (condition.is === 'absent' && target.single) return { target, is: 'between', from: { value: '', open: false } }
  if (condition.is === 'not in' && condition.values.length) return { target, is: 'in', values: condition.values }
}

/** The index alone can tell; what has several values is in it several times. */
async function countIndexed(db: Db, model: Model, condition: Indexed) {
  const equal = condition.is === 'in' && condition.values.length === 1
  if (!equal && !condition.target.single) return (await membersOf(db, model, { all: true }, [condition])).size
  const by = equal ? BY_VALUE.slice(1) : BY_VALUE
  return countRows(db, { from: 'entity_index i', where: indexWhere(condition), by })
}

/** How many entities match, all of them: a slice after the other, where those are not known to be few. */
async function total(db: Db, model: Model, scan: Scan, reach: Reach, conditions: Condition[]) {
  const { matching, ...rows } = passageOf(model, scan, reach, conditions)
  const countOf = async ({ sql, params }: Part) =>
    Number((await db.ask(`select count(*) from ${rows.from} where ${sql}`, params))[0]![0])
  if (scan.by === 'values') return countOf(matching)
  let counted = 0
  for await (const { conditions } of rangesOf(db, rows)) counted += await countOf(and([matching, ...conditions]))
  return counted
}
