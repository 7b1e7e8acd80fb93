import { count, type SQL, sql, sum } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import { DAY_MS, toIsoString } from '../../core/clock'
import { badRequest } from '../../core/problem'
import { parseList } from '../../core/query-lists'
import { parseNames } from '../../storage/pagination'
import { usage } from '../tables'
import { MICROS_PER_UNIT } from './prices'
import { type AiUsageTotal, type Grouping, USAGE_GROUPINGS } from './shapes'

const { model, user, workspace, integration, source, thread, status, kind } = usage
const columns = { model, user, workspace, integration, source, thread, status, kind }
const MAX_GROUPS = 100_000
const SUM_FIELDS = ['promptTokens', 'completionTokens', 'totalTokens', 'cost', 'count'] as const

/** Returns the groupings that a query names. @throws 400 for unknown ones */
export function parseGroupings(groupBy: string | undefined): Grouping[] {
  const names = [...new Set(parseNames(groupBy, 'groupBy'))]
  const unknownName = names.find((name) => !USAGE_GROUPINGS.includes(name as Grouping))
  if (unknownName !== undefined)
    badRequest({ path: 'groupBy', message: `Cannot group by "${unknownName}". Use ${USAGE_GROUPINGS.join(', ')}.` })
  return names as Grouping[]
}

/**
 * Returns the total usage of each group, ordered by the groupings unless `sort` says otherwise. The database sums up days,
 * and months are summed up here, because date functions differ between the engines.
 * @throws 400 for an unknown sort key, or too many groups
 */
export async function computeTotals({ db }: Ctx, by: Grouping[], where: SQL | undefined, sort: string | undefined) {
  const compare = compareBy(sort, by)
  const day = sql<number>`${usage.created} / ${sql.raw(`${DAY_MS}`)}`
  const isByDate = by.includes('day') || by.includes('month')
  const keys = { ...(isByDate && { day }), ...pick(columns, by) }
  const rows = await db
    .select({
      ...keys,
      ...{ count: count(), prompt: sum(usage.promptTokens), completion: sum(usage.completionTokens) },
      cost: sum(usage.cost),
    })
    .from(usage)
    .where(where)
    .groupBy(...Object.values(keys))
    .limit(MAX_GROUPS + 1)
  if (rows.length > MAX_GROUPS)
    badRequest({
      path: 'groupBy',
      message: `There are more than ${MAX_GROUPS} groups. Add a filter, or group by less.`,
    })
  const groups = new Map<string, AiUsageTotal>()
  for (const { day, count, prompt, completion, cost, ...row } of rows) {
    const date = day === undefined ? '' : toIsoString(Math.floor(Number(day)) * DAY_MS)
    const dates = { day: date.slice(0, 10), month: date.slice(0, 7) }
    const key = Object.fromEntries(
      by.map((groupKey) => [groupKey, { ...dates, ...(row as object) }[groupKey as 'day']]),
    )
    const groupKey = JSON.stringify(key)
    const total = groups.get(groupKey) ?? { ...key, ...EMPTY_TOTALS }
    const [promptTokens, completionTokens] = [
      total.promptTokens + Number(prompt),
      total.completionTokens + Number(completion),
    ]
    groups.set(groupKey, {
      ...{ ...total, promptTokens, completionTokens, totalTokens: promptTokens + completionTokens },
      ...{ cost: total.cost + Number(cost), count: total.count + count },
    })
  }
  const totals = [...groups.values()].map((group) => ({ ...group, cost: group.cost / MICROS_PER_UNIT }))
  return totals.sort(compare)
}

const EMPTY_TOTALS = { promptTokens: 0, completionTokens: 0, totalTokens: 0, cost: 0, count: 0 }

const pick = <Of extends object>(of: Of, names: string[]) =>
  Object.fromEntries(Object.entries(of).filter(([name]) => names.includes(name))) as Partial<Of>

/** Compares totals. Null comes last in either direction, as in other lists. */
function compareBy(sort: string | undefined, by: Grouping[]) {
  const sortable: string[] = [...by, ...SUM_FIELDS]
  const sortParts = sort === undefined ? [] : parseList(sort, 'sort')
  const sortKeys = sortParts
    .filter(Boolean)
    .map((part) => [part.replace(/^[+-]/, ''), part.startsWith('-') ? -1 : 1] as const)
  const unknownKey = sortKeys.find(([name]) => !sortable.includes(name))
  if (unknownKey)
    badRequest({ path: 'sort', message: `Cannot sort groups by "${unknownKey[0]}". Use ${sortable.join(', ')}.` })
  const allKeys = [...sortKeys, ...by.map((name) => [name, 1] as const)] as (readonly [keyof AiUsageTotal, 1 | -1])[]
  return (one: AiUsageTotal, other: AiUsageTotal) => {
    for (const [name, direction] of allKeys) {
      const [a = null, b = null] = [one[name], other[name]]
      if (a === b) continue
      if (a === null || b === null) return a === null ? 1 : -1
      return a < b ? -direction : direction
    }
    return 0
  }
}
