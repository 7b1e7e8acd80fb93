import { and, count, gte, inArray, lt, sql, sum } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Ctx } from '../accounts/guard'
import { settingsOf } from '../accounts/settings'
import { DAY, iso } from '../core/clock'
import { type Answer, forbidKeeping } from '../core/etag'
import { invalid } from '../core/problem'
import { given } from '../core/shapes'
import { answerPage, type Listing, namesOf, pageOf } from '../storage/lists'
import type { Tenant } from '../tenancy/tenants'
import type { Used, UsedBy } from './shapes'
import { usage } from './tables'
import type { Usage } from './turn/model'

/** What costs are counted in: millionths of the currency of the tenant's prices. */
export const MILLION = 1_000_000

const DEAREST = 1e15 // that a row has room for, so that many can be summed

/** What so many tokens of a model cost, in millionths; 0 where the tenant has no price for it. */
export async function costOf(tenant: Tenant, model: string, { prompt, completion }: Usage): Promise<number> {
  const { prices } = await settingsOf(tenant, 'ai-configuration')
  const price = Object.hasOwn(prices, model) ? prices[model] : undefined
  // A price for a million tokens is as many millionths for one.
  return price ? Math.min(Math.round(prompt * price.prompt + completion * price.completion), DEAREST) : 0
}

const { _id, created, integration, source, model, user, workspace, thread, status } = usage
const { promptTokens, completionTokens, cost, durationMs } = usage
const sortable = { _id, created, model, promptTokens, completionTokens, cost, durationMs }
const columns = { integration, source, model, user, workspace, thread, status }
type Filters = { [column in keyof typeof columns]?: string } & { from?: string; to?: string; groupBy?: string }

/** A page of completions and what they took, newest first; with `groupBy` what those took together that are alike. */
export async function list(ctx: Ctx, query: Filters & Listing, answer: Answer): Promise<(Used | UsedBy)[]> {
  forbidKeeping(answer)
  const page = pageOf(query, sortable)
  const named = Object.entries(columns).map(([name, column]) => {
    const names = namesOf(query[name as keyof typeof columns], name)
    return names && inArray(column as SQLiteColumn, names)
  })
  const [from, to] = [momentOf(query.from, 'from'), momentOf(query.to, 'to')]
  const where = and(...named, from ? gte(created, from) : undefined, to ? lt(created, to) : undefined)
  const by = given(query.groupBy)
  if (by) {
    const groups = await grouped(ctx, by, where)
    return answerPage(answer, page, groups.slice(page.offset), async () => groups.length)
  }
  const rows = await ctx.db
    .select()
    .from(usage)
    .where(where)
    .orderBy(...page.order)
    .limit(page.limit + 1)
    .offset(page.offset)
  const shown = rows.map((row) => ({ ...row, cost: row.cost / MILLION }))
  return answerPage(answer, page, shown, () => ctx.db.$count(usage, where))
}

function momentOf(text: string | undefined, path: string) {
  const wanted = given(text)
  if (!wanted) return
  const moment = Date.parse(wanted)
  return Number.isNaN(moment) ? invalid({ path, message: `${path} must be a time, such as 2026-01-31.` }) : iso(moment)
}

/** By days in the database, which are put together to months here: engines have calendars of their own. */
async function grouped({ db }: Ctx, by: string, where: ReturnType<typeof and>): Promise<UsedBy[]> {
  const dated = by === 'day' || by === 'month'
  const key = dated ? sql<number>`${created} / 86400000` : columns[by as keyof typeof columns]
  const sums = { prompt: sum(promptTokens), completion: sum(completionTokens), cost: sum(cost), completions: count() }
  const rows = await db
    .select({ key: key as SQLiteColumn, ...sums })
    .from(usage)
    .where(where)
    .groupBy(key as SQLiteColumn)
  const groups = new Map<string | null, UsedBy>()
  for (const row of rows) {
    const group = dated ? iso(Number(row.key) * DAY).slice(0, by === 'day' ? 10 : 7) : (row.key as string | null)
    const before = groups.get(group) ?? { group, completions: 0, promptTokens: 0, completionTokens: 0, cost: 0 }
    groups.set(group, {
      group,
      completions: before.completions + row.completions,
      promptTokens: before.promptTokens + Number(row.prompt),
      completionTokens: before.completionTokens + Number(row.completion),
      cost: before.cost + Number(row.cost),
    })
  }
  const told = [...groups.values()].map((one) => ({ ...one, cost: one.cost / MILLION }))
  return told.toSorted((one, other) => ((one.group ?? '') < (other.group ?? '') ? -1 : 1))
}
