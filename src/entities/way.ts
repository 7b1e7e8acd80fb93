import type { Model } from '../blueprints/model'
import type { Reach } from '../blueprints/rules'
import type { Db } from '../storage/port'
import { and, holds, type Indexed, indexWhere, isIndexed, type Part, within } from './conditions'
import { inOrderOf, inTimeOf, isOwn } from './members'
import { isCreated, latest, mayLack } from './order'
import type { Condition, Query } from './query'
import { collecting, everything, gathering, isOfColumn, matching, ranked, type Scan, searched } from './scans'
import { bounds, few } from './sizes'
import type { Walk } from './walk'

/** A way through the entities of a query that can be gone in slices, in the order of time. */
export const scanOf = async (db: Db, model: Model, reach: Reach, query: Query): Promise<Scan> =>
  (await wayOf(db, model, reach, { ...query, ranked: false, order: [latest(true)] })).scan

/** A condition that was thought of as a way: how many rows of the index meet it, as far as that was counted. */
export type Considered = { condition: Condition | 'reach'; rows: number; scan: Scan; ordered: boolean }

/**
 * Which rows to go through, and what was considered. `walked`: many rows may be gone through in vain, so first it is tried
 * whether there are enough where this index begins.
 */
export type Way = { scan: Scan; walked?: Walk; considered: Considered[] }

export async function wayOf(db: Db, model: Model, reach: Reach, query: Query): Promise<Way> {
  if (query.ranked) return { scan: ranked(model, query.search!), considered: [] }
  const choice = await choose(db, model, reach, query)
  const { scan = everything(model), considered } = choice
  return { scan, considered, walked: walkOf(model, reach, query, choice) }
}

/** A scan, unless nothing leads to the rows but an order; and whether it is known to go through few in vain. */
type Choice = { scan?: Scan; bounded: boolean; considered: Considered[] }

/** The index that has the order; none where few rows are gone through anyway. */
function walkOf(model: Model, reach: Reach, { conditions, order, search }: Query, { scan, bounded }: Choice) {
  if (bounded || search !== undefined) return
  const [covered] = scan?.covered ?? []
  if (covered) return { source: inTimeOf(covered as Indexed), covered: [covered] }
  const { target } = order[0]!
  // Whose they are is known to the index of time only.
  const single = isCreated(target) && !reach.all && (reach.user === undefined || reach.workspace === undefined)
  const source = inOrderOf(model, target, conditions, single ? within(reach) : [])
  return (
    source && {
      source,
      covered: conditions.filter((one) => isOwn(target, one)),
      of: isCreated(target) ? undefined : target,
    }
  )
}

/**
 * Which rows to go through: those of the condition that fewest meet, when they are few or are kept in the order that is
 * asked for. Otherwise no scan: go through all in their order.
 */
async function choose(db: Db, model: Model, reach: Reach, query: Query): Promise<Choice> {
  const { conditions, order, search } = query
  if (search !== undefined) return { scan: searched(model, search), bounded: true, considered: [] }
  const byTime = order.length === 1 && isCreated(order[0]!.target)
  const indexed = conditions.filter(isIndexed)
  const equal = indexed.filter((one) => one.is === 'in' && one.values.length === 1)
  if (byTime && reach.all && conditions.length === 1 && equal.length === 1)
    return { scan: matching(equal[0]!), bounded: true, considered: [] }
  const considered: Considered[] = []
  for (const condition of indexed) {
    const ordered = byTime && equal.includes(condition)
    const scan = ordered ? matching(condition) : collecting(model, condition)
    considered.push({ condition, rows: await few(db, 'entity_index i', indexWhere(condition)), scan, ordered })
  }
  for (const condition of conditions.filter(isOfColumn))
    considered.push({ condition, ...(await gathered(db, model, holds(condition), [condition])), ordered: false })
  if (considered.length && !reach.all) {
    const whose = and(within(reach))
    const { rows, scan } = await gathered(db, model, whose, [])
    considered.push({ condition: 'reach', rows, scan: byTime ? everything(model) : scan, ordered: byTime })
  }
  considered.sort((one, other) => one.rows - other.rows || Number(other.ordered) - Number(one.ordered))
  const [least] = considered
  if (least && least.rows < bounds.few) return { scan: least.scan, bounded: true, considered }
  const ordered = considered.find(({ ordered }) => ordered)
  // All that somebody may see is in the order of time already, and all that there is in that of what none is without.
  const alone = reach.all || (byTime && (reach.user === undefined || reach.workspace === undefined))
  const bounded = alone && !conditions.length && !(order[0] && mayLack(order[0].target))
  return { scan: ordered?.scan ?? (byTime ? everything(model) : undefined), bounded, considered }
}

async function gathered(db: Db, model: Model, where: Part, covered: Condition[]) {
  const scan = gathering(model, where, covered)
  const rows = everything(model)
  return { scan, rows: await few(db, rows.from, and([rows.where, where])) }
}
