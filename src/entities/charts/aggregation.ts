import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import { badRequest } from '../../core/problem'
import type { Db } from '../../storage/port'
import { count } from '../query/count'
import { requestMissingIndex } from '../query/index-advice'
import type { FieldTarget } from '../query/sql-conditions'
import { shownColumnSql } from '../store/serializer'
import { fragment } from '../store/sql-fragments'
import type { ChartQuery } from './chart-query'
import { countWithValues, scanEntities, scanValues } from './group-scan'
import { type Amount, createGrouping, type Group, type Grouping, type GroupPosition } from './grouping'
import { isMultiValued, parseKeys, readDocumentKeys } from './values'

export type Aggregation = { all: Amount; groups: Map<GroupPosition, Group>; unknown: Amount }

const MAX_GROUPS = 100_000 // distinct groups

/**
 * Counts entities and sums a property: in total, for each group, and for entities in no group. An entity counts once in
 * each group that one of its values belongs to. @throws 400 for too many groups
 */
export async function aggregate(
  db: Db,
  model: Model,
  rowScope: RowScope,
  chartQuery: ChartQuery,
  grouping: Grouping | undefined,
): Promise<Aggregation> {
  const { query, by, sum } = chartQuery
  const result: Aggregation = { all: { count: 0, units: 0n }, groups: new Map(), unknown: { count: 0, units: 0n } }
  const unitsOf = (keys: string[]) => keys.reduce((units, key) => units + sum!.kind!.exactSum!.units(key), 0n)

  const target = findIndexTarget(chartQuery, rowScope, grouping)
  if (target) await requestMissingIndex(db, model, target.field, 'chart')
  if (target?.indexed) {
    for await (const rows of scanValues(db, target))
      for (const [key, count, first] of rows as [string, number, number][])
        addRow(result, grouping, [key], sum ? unitsOf([key]) : 0n, Number(count), Number(first))
    if (by) {
      const lacking = (await count(db, model, rowScope, query)) - (await countWithValues(db, target))
      result.unknown.count = Math.max(0, lacking)
    }
    return result
  }

  // The index has each value of a list once, so the sum of a list has to be read from the document.
  const readsDocument = !!sum && isMultiValued(sum)
  const selected = [
    ...(grouping ? [grouping.selected] : []),
    ...(sum ? [readsDocument ? fragment(shownColumnSql(model)) : createGrouping(sum).selected] : []),
  ]
  const large = readsDocument || (!!by && isMultiValued(by))
  for await (const rows of scanEntities(db, model, rowScope, query, selected, large))
    for (const row of rows) {
      const [added, count, first] = [row.at(-3)!, Number(row.at(-2)), Number(row.at(-1))]
      const values = !sum ? [] : readsDocument ? readDocumentKeys(sum, added as string) : parseKeys(sum, added)
      addRow(result, grouping, by ? parseKeys(by, row[0]!) : [], unitsOf(values), count, first)
    }
  return result
}

/**
 * Returns the target when its index alone is sufficient, whether it has one or not: for one property of all entities. The
 * index cannot tell which entities have several values in one group, nor how often a list contains a value.
 */
function findIndexTarget(
  { query, by, sum }: ChartQuery,
  rowScope: RowScope,
  grouping: Grouping | undefined,
): FieldTarget | undefined {
  const target = by && sum ? undefined : (by ?? sum)?.target
  if (target?.at !== 'field' || !rowScope.all) return
  if (query.conditions.length || query.search !== undefined || query.words !== undefined) return
  return target.single || grouping?.exact ? target : undefined
}

function addRow(
  { all, groups, unknown }: Aggregation,
  grouping: Grouping | undefined,
  keys: string[],
  units: bigint,
  count: number,
  first: number,
) {
  const amount = { count, units: units * BigInt(count) }
  addAmount(all, amount)
  if (!grouping) return
  if (!keys.length) addAmount(unknown, amount)
  for (const [position, key] of new Map(keys.map((key) => [grouping.toPosition(key), key]))) {
    const group = groups.get(position)
    if (group) {
      addAmount(group, amount)
      if (first < group.first) Object.assign(group, { first, key })
    } else if (groups.size < MAX_GROUPS) groups.set(position, { ...amount, position, first, key })
    else throwTooManyGroups()
  }
}

function addAmount(amount: Amount, { count, units }: Amount) {
  amount.count += count
  amount.units += units
}

const throwTooManyGroups = () =>
  badRequest({
    path: '',
    message: `There are more than ${MAX_GROUPS} groups. Add a filter, or group by another field.`,
  })
