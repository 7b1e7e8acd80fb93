import { inArray } from 'drizzle-orm'
import type { OpenCtx } from '../../accounts/guard'
import { settingsOf } from '../../accounts/settings'
import { iso, now } from '../../core/clock'
import { Problem } from '../../core/problem'
import { spent } from '../tables'
import { MILLION } from './prices'
import { type Period, spentId } from './spending'

/**
 * Refuses to ask a model where one of the tenant's budgets is used up: its own, or that of the caller or the caller's
 * workspace. What runs at once is not known of each other, so together it may pass a budget. Days and months are those of
 * UTC. @throws 429 BUDGET_EXCEEDED, with the time until the next day or month
 */
export async function withinBudget({ actor, ...tenant }: OpenCtx): Promise<void> {
  const { budgets } = await settingsOf(tenant, 'ai-configuration')
  const whose = { tenant: '', user: actor?.user, workspace: actor?.workspace?._id }
  const time = iso(now())
  const those = budgets.flatMap((budget) => {
    const subject = whose[budget.scope]
    return subject === undefined ? [] : { ...budget, _id: spentId(budget.scope, subject, budget.period, time) }
  })
  if (!those.length) return
  const ids = those.map(({ _id }) => _id)
  const sums = await tenant.db.select().from(spent).where(inArray(spent._id, ids))
  for (const { _id, scope, period, unit, limit } of those) {
    const { tokens = 0, cost = 0 } = sums.find((one) => one._id === _id) ?? {}
    const used = unit === 'tokens' ? tokens : cost / MILLION
    if (used < limit) continue
    const [end, whole] = [endOf(period), `${limit} ${unit === 'tokens' ? 'tokens' : 'in cost'} a ${period}`]
    throw new Problem(
      429,
      'BUDGET_EXCEEDED',
      `The budget of this ${scope} is used up: ${whole}. Ask again when the next ${period} has begun, or ask an admin for more.`,
      {
        details: { scope, period, unit, limit, used, until: iso(end) },
        headers: { 'retry-after': `${Math.max(1, Math.ceil((end - now()) / 1000))}` },
      },
    )
  }
}

function endOf(period: Period) {
  const date = new Date(now())
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
  return period === 'day' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1)
}
