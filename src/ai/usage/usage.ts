import { and, gte, inArray, lt, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Ctx } from '../../accounts/context'
import { DAY_MS, isIsoDate, parseIsoDateTime, toIsoString } from '../../core/clock'
import { badRequest, type FieldError } from '../../core/problem'
import type { ListPage } from '../../core/response-headers'
import { parseOptional } from '../../core/shapes'
import { applyPage, parseNames, parsePage, toGrowingListPage, toListPage } from '../../storage/pagination'
import { usage } from '../tables'
import { MICROS_PER_UNIT } from './prices'
import type { AiUsage, AiUsageTotal, UsageFilters, UsageQuery } from './shapes'
import { computeTotals, parseGroupings } from './usage-totals'

const { _id, created, integration, source, model, user, workspace, thread, status, kind } = usage
const { promptTokens, completionTokens, cost, durationMs } = usage
const filterColumns = { user, workspace, integration, source, model, thread, status, kind }
const sortable = { ...{ _id, created, ...filterColumns }, ...{ promptTokens, completionTokens, cost, durationMs } }

/** Returns the usage of completions and embeddings, newest first, or their totals with `groupBy`. @throws 400 */
export async function list(ctx: Ctx, query: UsageQuery): Promise<ListPage<AiUsage | AiUsageTotal>> {
  const where = toCondition(query)
  const by = parseGroupings(query.groupBy)
  if (by.length) {
    const page = parsePage({ ...query, sort: '', $after: '' }, sortable)
    const totals = await computeTotals(ctx, by, where, parseOptional(query.sort))
    const pageOfTotals = totals.slice(page.offset, page.offset + page.limit + 1)
    return toListPage<AiUsageTotal>(page, pageOfTotals, async () => totals.length)
  }
  const page = parsePage(query, sortable)
  const rows = await applyPage(page, ctx.db.select().from(usage).where(and(where, page.after)))
  const toAiUsage = ({ cost, ...row }: (typeof rows)[number]): AiUsage => ({ ...row, cost: cost / MICROS_PER_UNIT })
  return toGrowingListPage(page, rows, () => ctx.db.$count(usage, where), toAiUsage)
}

function toCondition(query: UsageFilters): SQL | undefined {
  const fieldErrors: FieldError[] = []
  const anyOf = (name: keyof typeof filterColumns) => {
    const column: SQLiteColumn = filterColumns[name]
    const names = parseNames(query[name], name)
    return names && inArray(column, names)
  }
  const parseTime = (path: 'from' | 'to') => {
    const text = parseOptional(query[path])
    if (text === undefined) return
    const time = parseIsoDateTime(text)
    if (time !== undefined) return toIsoString(isIsoDate(text) && path === 'to' ? time + DAY_MS : time)
    fieldErrors.push({ path, message: `${path} must be a day or a moment such as 2026-01-31T12:00:00Z.` })
  }
  const [from, to] = [parseTime('from'), parseTime('to')]
  if (fieldErrors.length) badRequest(...fieldErrors)
  return and(
    from === undefined ? undefined : gte(created, from),
    to === undefined ? undefined : lt(created, to),
    ...(Object.keys(filterColumns) as (keyof typeof filterColumns)[]).map(anyOf),
  )
}
