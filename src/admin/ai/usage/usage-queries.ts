import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../../api/client'
import type { AiUsageTotal } from '../../api/schema'
import { findConfiguration } from '../../content/configuration-queries'

const DAY_MS = 86_400_000
const MAX_GROUPS = 1_000

/** What usage is grouped by. */
export type UsageGrouping = 'integration' | 'user' | 'model'

/** What usage is counted in. */
export type UsageUnit = 'tokens' | 'cost'

/** Returns how much usage is. */
export const toAmount = ({ totalTokens, cost }: Pick<AiUsageTotal, 'totalTokens' | 'cost'>, unit: UsageUnit) =>
  unit === 'tokens' ? totalTokens : cost

/** The periods that the screen offers, by the value in the address. */
export const periods = {
  '7': { label: '7 days', days: 7, step: 'day' },
  '30': { label: '30 days', days: 30, step: 'day' },
  '90': { label: '90 days', days: 90, step: 'day' },
  '365': { label: '12 months', days: 365, step: 'month' },
} as const
export type PeriodKey = keyof typeof periods

const toDay = (moment: number) => new Date(moment).toISOString().slice(0, 10)

/** Returns the days or months of a period until today, as usage names them. */
export function listSteps(period: PeriodKey): string[] {
  const { days, step } = periods[period]
  const all = Array.from({ length: days }, (_, n) => toDay(Date.now() - (days - 1 - n) * DAY_MS))
  return step === 'day' ? all : [...new Set(all.map((day) => day.slice(0, 7)))]
}

const fetchTotals = async (query: { from: string; groupBy: string; page?: number }) =>
  (await fetchData(api.GET('/api/ai/usage', { params: { query: { ...query, limit: MAX_GROUPS } } }))) as AiUsageTotal[]

/** The usage of a period, by its days or months and by one more property. */
export const usageQuery = (period: PeriodKey, grouping: UsageGrouping) =>
  queryOptions({
    queryKey: ['ai-usage', period, grouping],
    queryFn: async () => {
      const from = `${listSteps(period)[0]}${periods[period].step === 'month' ? '-01' : ''}`
      const totals: AiUsageTotal[] = []
      for (let page = 1; ; page++) {
        const more = await fetchTotals({ from, groupBy: `${periods[period].step},${grouping}`, page })
        totals.push(...more)
        if (more.length < MAX_GROUPS) return totals
      }
    },
  })

/** A limit of usage, with the most that one tenant, workspace or user has used of it in the current period. */
export type Budget = {
  scope: 'tenant' | 'workspace' | 'user'
  period: 'day' | 'month'
  unit: UsageUnit
  limit: number
  used: number
  /** Who used the most. */
  subject?: string
}

async function measureBudget(budget: Omit<Budget, 'used'>): Promise<Budget> {
  const { scope, period, unit } = budget
  const today = toDay(Date.now())
  const from = period === 'day' ? today : `${today.slice(0, 7)}-01`
  const totals = await fetchTotals({ from, groupBy: scope === 'tenant' ? period : `${period},${scope}` })
  const [largest] = totals
    .filter((total) => scope === 'tenant' || total[scope])
    .sort((one, other) => toAmount(other, unit) - toAmount(one, unit))
  const subject = largest && scope !== 'tenant' ? (largest[scope] ?? undefined) : undefined
  return { ...budget, used: largest ? toAmount(largest, unit) : 0, subject }
}

/** All budgets of the `ai-configuration` with what is used of them. */
export const budgetsQuery = queryOptions({
  queryKey: ['ai-usage', 'budgets'],
  queryFn: async () => {
    const configuration = await findConfiguration('ai-configuration')
    const budgets = (configuration?.metadata.budgets ?? []) as Omit<Budget, 'used'>[]
    return Promise.all(budgets.map(measureBudget))
  },
})
