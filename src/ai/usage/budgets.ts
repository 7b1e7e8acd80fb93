import { inArray } from 'drizzle-orm'
import type { OpenCtx } from '../../accounts/guard'
import { settingsOf } from '../../accounts/settings'
import { iso, now } from '../../core/clock'
import { Problem } from '../../core/problem'
import { spent } from '../tables'
import { MILLION } from './prices'
import { type Period, type Scope, spentId } from './spending'

/** What some work is expected to take; costs in millionths. */
export type Expected = { tokens: number; cost: number }

/** Of what there is a budget for, what those take that run now in this process, as far as anybody can expect. */
const running = new Map<string, Expected>()

/**
 * Refuses to ask a model where one of the tenant's budgets is used up: its own, or that of the caller or the caller's
 * workspace; also where those that run already are expected to use it up. What it `expects` itself counts for those that come
 * next, until what is returned is called; nothing, for what is a part of work that was counted already. Days and months are those of UTC.
 * @throws 429 BUDGET_EXCEEDED, with the time until it may be asked again
 */
export async function withinBudget({ actor, ...tenant }: OpenCtx, expects?: Expected): Promise<() => void> {
  const { budgets } = await settingsOf(tenant, 'ai-configuration')
  const whose = { tenant: '', user: actor?.user, workspace: actor?.workspace?._id }
  const time = iso(now())
  const those = budgets.flatMap((budget) => {
    const subject = whose[budget.scope]
    return subject === undefined ? [] : { ...budget, _id: spentId(budget.scope, subject, budget.period, time) }
  })
  if (!those.length) return () => {}
  const ids = [...new Set(those.map(({ _id }) => _id))]
  const keys = ids.map((_id) => `${tenant.tenant} ${_id}`)
  // Whoever came before counts, also where it ends while the sums are read.
  const before = new Map(ids.map((_id, n) => [_id, running.get(keys[n]!)]))
  const over = expects ? counting(keys, expects) : () => {}
  try {
    const sums = await tenant.db.select().from(spent).where(inArray(spent._id, ids))
    for (const { _id, ...budget } of those) {
      const amount = ({ tokens = 0, cost = 0 }: Partial<Expected> = {}) =>
        budget.unit === 'tokens' ? tokens : cost / MILLION
      const [used, taking] = [amount(sums.find((one) => one._id === _id)), amount(before.get(_id))]
      if (used >= budget.limit) throw usedUp(budget, used)
      if (expects && used + taking >= budget.limit) throw beingUsedUp(budget, used, taking)
    }
    return over
  } catch (error) {
    over()
    throw error
  }
}

/** Counts until what is returned is called. */
function counting(keys: string[], { tokens, cost }: Expected): () => void {
  const count = (key: string, by: 1 | -1) => {
    const known = running.get(key) ?? { tokens: 0, cost: 0 }
    const then = { tokens: known.tokens + by * tokens, cost: known.cost + by * cost }
    if (then.tokens || then.cost) running.set(key, then)
    else running.delete(key)
  }
  for (const key of keys) count(key, 1)
  return () => {
    for (const key of keys.splice(0)) count(key, -1)
  }
}

type Budget = { scope: Scope; period: Period; unit: 'tokens' | 'cost'; limit: number }

const worded = ({ period, unit, limit }: Budget) => `${limit} ${unit === 'tokens' ? 'tokens' : 'in cost'} a ${period}`

function usedUp(budget: Budget, used: number) {
  const { scope, period } = budget
  const end = endOf(period)
  const message = `The budget of this ${scope} is used up: ${worded(budget)}. Ask again when the next ${period} has begun, or ask an admin for more.`
  const wait = Math.max(1, Math.ceil((end - now()) / 1000))
  return exceeded(message, { ...budget, used, until: iso(end) }, wait)
}

const beingUsedUp = (budget: Budget, used: number, running: number) =>
  exceeded(
    `What is being answered now may use up the budget of this ${budget.scope}: ${worded(budget)}. Ask again in a moment.`,
    { ...budget, used, running },
    SOON,
  )

const SOON = 5 // s

const exceeded = (message: string, details: object, wait: number) =>
  new Problem(429, 'BUDGET_EXCEEDED', message, { details, headers: { 'retry-after': `${wait}` } })

function endOf(period: Period) {
  const date = new Date(now())
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
  return period === 'day' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1)
}
