import { count, type SQL, sql, sum } from 'drizzle-orm'
import type { Ctx } from '../../accounts/guard'
import { DAY, iso } from '../../core/clock'
import { invalid } from '../../core/problem'
import { namesOf } from '../../storage/lists'
import { usage } from '../tables'
import { MILLION } from './prices'
import { type Grouping, groupings, type UsedTogether } from './shapes'

const { model, user, workspace, integration, source, thread, status, kind } = usage
const columns = { model, user, workspace, integration, source, thread, status, kind }
const sums = ['promptTokens', 'completionTokens', 'totalTokens', 'cost', 'count'] as const

/** By what a query groups. @throws 400 for what it can't be */
export function groupingsOf(groupBy: string | undefined): Grouping[] {
  const names = [...new Set(namesOf(groupBy, 'groupBy'))]
  const unknown = names.find((name) => !groupings.includes(name as Grouping))
  if (unknown !== undefined)
    invalid({ path: 'groupBy', message: `There is no "${unknown}" to group by. Choose among ${groupings.join(', ')}.` })
  return names as Grouping[]
}

/**
 * What models took together, in the order of what they are grouped by unless `sort` says otherwise. The database adds
 * up days, which become months here: calendars are each engine's own. @throws 400
 */
export async function groupsOf({ db }: Ctx, by: Grouping[], where: SQL | undefined, sort: string | undefined) {
  const compare = orderOf(sort, by)
  const day = sql<number>`${usage.created} / ${sql.raw(`${DAY}`)}`
  const dated = by.includes('day') || by.includes('month')
  const keys = { ...(dated && { day }), ...picked(columns, by) }
  const rows = await db
    .select({
      ...keys,
      ...{ count: count(), prompt: sum(usage.promptTokens), completion: sum(usage.completionTokens) },
      cost: sum(usage.cost),
    })
    .from(usage)
    .where(where)
    .groupBy(...Object.values(keys))
  const groups = new Map<string, UsedTogether>()
  for (const { day, count, prompt, completion, cost, ...row } of rows) {
    const date = day === undefined ? '' : iso(Math.floor(Number(day)) * DAY)
    const dates = { day: date.slice(0, 10), month: date.slice(0, 7) }
    const key = Object.fromEntries(by.map((name) => [name, { ...dates, ...(row as object) }[name as 'day']]))
    const name = JSON.stringify(key)
    const known = groups.get(name) ?? { ...key, ...NOTHING }
    const [promptTokens, completionTokens] = [
      known.promptTokens + Number(prompt),
      known.completionTokens + Number(completion),
    ]
    groups.set(name, {
      ...{ ...known, promptTokens, completionTokens, totalTokens: promptTokens + completionTokens },
      ...{ cost: known.cost + Number(cost), count: known.count + count },
    })
  }
  const told = [...groups.values()].map((group) => ({ ...group, cost: group.cost / MILLION }))
  return told.sort(compare)
}

const NOTHING = { promptTokens: 0, completionTokens: 0, totalTokens: 0, cost: 0, count: 0 }

const picked = <Of extends object>(of: Of, names: string[]) =>
  Object.fromEntries(Object.entries(of).filter(([name]) => names.includes(name))) as Partial<Of>

/** Nothing comes last, in either direction, as in other lists. */
function orderOf(sort: string | undefined, by: Grouping[]) {
  const sortable: string[] = [...by, ...sums]
  const asked = sort?.split(',').map((part) => part.trim()) ?? []
  const keys = asked.filter(Boolean).map((part) => [part.replace(/^[+-]/, ''), part.startsWith('-') ? -1 : 1] as const)
  const unknown = keys.find(([name]) => !sortable.includes(name))
  if (unknown)
    invalid({ path: 'sort', message: `Groups cannot be sorted by "${unknown[0]}", but by ${sortable.join(', ')}.` })
  const all = [...keys, ...by.map((name) => [name, 1] as const)] as (readonly [keyof UsedTogether, 1 | -1])[]
  return (one: UsedTogether, other: UsedTogether) => {
    for (const [name, direction] of all) {
      const [a = null, b = null] = [one[name], other[name]]
      if (a === b) continue
      if (a === null || b === null) return a === null ? 1 : -1
      return a < b ? -direction : direction
    }
    return 0
  }
}
