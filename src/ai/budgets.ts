import { and, eq, gte, sum } from 'drizzle-orm'
import type { OpenCtx } from '../accounts/guard'
import { settingsOf } from '../accounts/settings'
import { iso, now } from '../core/clock'
import { Problem } from '../core/problem'
import type { Talking } from './agents'
import { usage } from './tables'
import { MILLION } from './usage'

/**
 * Refuses a completion where one of the tenant's budgets is used up: its own, or that of the caller or the caller's workspace.
 * Days and months are those of UTC. @throws 429 BUDGET_EXCEEDED
 */
export async function withinBudget(ctx: OpenCtx, _agent: Pick<Talking, '_id'>): Promise<void> {
  const { budgets } = await settingsOf(ctx, 'ai-configuration')
  for (const { scope, period, unit, limit } of budgets) {
    const whose = { tenant: '', user: ctx.actor?.user, workspace: ctx.actor?.workspace?._id }[scope]
    if (whose === undefined) continue
    const of = scope === 'tenant' ? undefined : eq(usage[scope], whose)
    const since = gte(usage.created, begin(period))
    const { prompt, completion, cost } = (await ctx.db
      .select({ prompt: sum(usage.promptTokens), completion: sum(usage.completionTokens), cost: sum(usage.cost) })
      .from(usage)
      .where(and(of, since))
      .get())!
    const used = unit === 'tokens' ? Number(prompt ?? 0) + Number(completion ?? 0) : Number(cost ?? 0) / MILLION
    if (used < limit) continue
    const details = { scope, period, unit, limit, used }
    const message = `The budget of this ${scope} for the ${period} is used up: ${limit} ${unit === 'tokens' ? 'tokens' : 'in cost'}.`
    throw new Problem(429, 'BUDGET_EXCEEDED', message, { details })
  }
}

const begin = (period: 'day' | 'month') =>
  iso(Date.parse(`${iso(now()).slice(0, period === 'day' ? 10 : 7)}${period === 'day' ? '' : '-01'}T00:00:00.000Z`))
