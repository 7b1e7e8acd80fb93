import { and, gte, inArray, lt, type SQL } from 'drizzle-orm'
import type { Ctx } from '../../accounts/guard'
import { DAY, isDate, iso } from '../../core/clock'
import { type Answer, forbidKeeping } from '../../core/etag'
import { type Flaw, invalid } from '../../core/problem'
import { given } from '../../core/shapes'
import { answerGrowingPage, answerPage, namesOf, paged, pageOf } from '../../storage/lists'
import { usage } from '../tables'
import { groupingsOf, groupsOf } from './groups'
import { MILLION } from './prices'
import type { Filters, UsageQuery, Used, UsedTogether } from './shapes'

const { _id, created, integration, source, model, user, workspace, thread, status, kind } = usage
const { promptTokens, completionTokens, cost, durationMs } = usage
const named = { user, workspace, integration, source, model, thread, status, kind }
const sortable = { ...{ _id, created, ...named }, ...{ promptTokens, completionTokens, cost, durationMs } }

/** What completions and embeddings took, the newest first; with `groupBy`, what they took together. @throws 400 */
export async function list(ctx: Ctx, query: UsageQuery, answer: Answer): Promise<(Used | UsedTogether)[]> {
  forbidKeeping(answer)
  const where = conditionOf(query)
  const by = groupingsOf(query.groupBy)
  if (by.length) {
    const page = pageOf({ ...query, sort: '', $after: '' }, sortable)
    const all = await groupsOf(ctx, by, where, given(query.sort))
    const some = all.slice(page.offset, page.offset + page.limit + 1)
    return answerPage<UsedTogether>(answer, page, some, async () => all.length)
  }
  const page = pageOf(query, sortable)
  const rows = await paged(page, ctx.db.select().from(usage).where(and(where, page.after)))
  const show = ({ cost, ...row }: (typeof rows)[number]): Used => ({ ...row, cost: cost / MILLION })
  return answerGrowingPage(answer, page, rows, () => ctx.db.$count(usage, where), show)
}

function conditionOf(query: Filters): SQL | undefined {
  const flaws: Flaw[] = []
  const anyOf = (name: keyof typeof named) => {
    const names = namesOf(query[name], name)
    return names && inArray(named[name], names as never[])
  }
  const moment = (path: 'from' | 'to') => {
    const text = given(query[path])
    if (text === undefined) return
    const at = isDate(text) && path === 'to' ? Date.parse(text) + DAY : Date.parse(text)
    if (Number.isFinite(at)) return iso(at)
    flaws.push({ path, message: `${path} must be a day or a moment such as 2026-01-31T12:00:00Z.` })
  }
  const [from, to] = [moment('from'), moment('to')]
  if (flaws.length) invalid(...flaws)
  return and(
    from === undefined ? undefined : gte(created, from),
    to === undefined ? undefined : lt(created, to),
    ...(Object.keys(named) as (keyof typeof named)[]).map(anyOf),
  )
}
