import { inArray } from 'drizzle-orm'
import type { PublicCtx } from '../../accounts/context'
import { now, toIsoString } from '../../core/clock'
import { Problem } from '../../core/problem'
import { openQuota } from '../../limits/quota-check'
import { getSettings } from '../../platform/settings/tenant-settings'
import { spent } from '../tables'
import { MICROS_PER_UNIT } from './prices'
import { type BudgetPeriod, type BudgetScope, toTotalId } from './usage-record'
import { usageSettings } from './usage-settings'

/** The expected usage of a request. The cost is in millionths of the currency. */
export type ExpectedUsage = { tokens: number; cost: number }

/** The expected usage of the running requests of this process, by tenant and total. */
const reservations = new Map<string, ExpectedUsage>()

/**
 * Checks the quota and the budgets of the tenant, and the budgets of the caller and of the caller's workspace, and
 * reserves the `expected` usage until the returned function is called. Without `expected`, the request is part of one
 * that has a reservation, and only what is used up counts. Days and months are those of UTC.
 * @throws 403 QUOTA_EXCEEDED when the quota of tokens is used up
 * @throws 429 BUDGET_EXCEEDED with `Retry-After` when a budget is used up, or running requests are expected to use up a
 * budget or the quota
 */
export async function reserveBudget(ctx: PublicCtx, expected?: ExpectedUsage): Promise<() => void> {
  const quota = await openQuota(ctx, 'aiTokens', 1)
  quota?.assertNotUsedUp()
  if (expected && quota && !quota.fits(1)) throw quotaReservedProblem()
  if (expected) quota?.hold(expected.tokens)
  try {
    const releaseBudgets = await reserveBudgets(ctx, expected)
    return () => {
      releaseBudgets()
      quota?.reset()
    }
  } catch (error) {
    quota?.reset()
    throw error
  }
}

async function reserveBudgets({ actor, ...tenant }: PublicCtx, expected?: ExpectedUsage): Promise<() => void> {
  const { budgets } = await getSettings(tenant, usageSettings)
  const subjectByScope = { tenant: '', user: actor?.user, workspace: actor?.workspace?._id }
  const time = toIsoString(now())
  const applicable = budgets.flatMap((budget) => {
    const subject = subjectByScope[budget.scope]
    return subject === undefined ? [] : { ...budget, _id: toTotalId(budget.scope, subject, budget.period, time) }
  })
  if (!applicable.length) return () => {}
  const ids = [...new Set(applicable.map(({ _id }) => _id))]
  const keys = ids.map((_id) => `${tenant.tenant} ${_id}`)
  // Earlier reservations count even if they end while the sums are read.
  const reservedBefore = new Map(ids.map((_id, n) => [_id, reservations.get(keys[n]!)]))
  const release = expected ? addReservation(keys, expected) : () => {}
  try {
    const sums = await tenant.db.select().from(spent).where(inArray(spent._id, ids))
    for (const { _id, ...budget } of applicable) {
      const amount = ({ tokens = 0, cost = 0 }: Partial<ExpectedUsage> = {}) =>
        budget.unit === 'tokens' ? tokens : cost / MICROS_PER_UNIT
      const [used, reserved] = [amount(sums.find((sum) => sum._id === _id)), amount(reservedBefore.get(_id))]
      if (used >= budget.limit) throw budgetUsedUpProblem(budget, used)
      if (expected && used + reserved >= budget.limit) throw budgetReservedProblem(budget, used, reserved)
    }
    return release
  } catch (error) {
    release()
    throw error
  }
}

/** Adds a reservation. Returns the function that removes it. */
function addReservation(keys: string[], { tokens, cost }: ExpectedUsage): () => void {
  const addToKey = (key: string, by: 1 | -1) => {
    const current = reservations.get(key) ?? { tokens: 0, cost: 0 }
    const next = { tokens: current.tokens + by * tokens, cost: current.cost + by * cost }
    if (next.tokens || next.cost) reservations.set(key, next)
    else reservations.delete(key)
  }
  for (const key of keys) addToKey(key, 1)
  return () => {
    for (const key of keys.splice(0)) addToKey(key, -1)
  }
}

type Budget = { scope: BudgetScope; period: BudgetPeriod; unit: 'tokens' | 'cost'; limit: number }

const formatBudget = ({ period, unit, limit }: Budget) =>
  `${limit} ${unit === 'tokens' ? 'tokens' : 'in cost'} a ${period}`

function budgetUsedUpProblem(budget: Budget, used: number) {
  const { scope, period } = budget
  const end = endOfPeriod(period)
  const message = `The budget of this ${scope} is used up: ${formatBudget(budget)}. Try again when the next ${period} begins, or ask an admin to raise it.`
  const wait = Math.max(1, Math.ceil((end - now()) / 1000))
  return budgetProblem(message, { ...budget, used, until: toIsoString(end) }, wait)
}

const budgetReservedProblem = (budget: Budget, used: number, running: number) =>
  budgetProblem(
    `Requests in progress may use up the budget of this ${budget.scope}: ${formatBudget(budget)}. Try again in a moment.`,
    { ...budget, used, running },
    RETRY_AFTER_SECONDS,
  )

const quotaReservedProblem = () =>
  budgetProblem(
    'Requests in progress may use up the quota of tokens of this tenant. Try again in a moment.',
    { quota: 'aiTokens' },
    RETRY_AFTER_SECONDS,
  )

const RETRY_AFTER_SECONDS = 5 // s

const budgetProblem = (message: string, details: object, wait: number) =>
  new Problem(429, 'BUDGET_EXCEEDED', message, { details, headers: { 'retry-after': `${wait}` } })

function endOfPeriod(period: BudgetPeriod) {
  const date = new Date(now())
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
  return period === 'day' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1)
}
