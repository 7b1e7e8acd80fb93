import type { AiUsageTotal } from '../../api/schema'
import type { EChartProps } from '../../ui/echart'
import { toAmount, type UsageGrouping, type UsageUnit } from './usage-queries'

const MAX_SERIES = 7
const compact = new Intl.NumberFormat(undefined, { notation: 'compact' })

/** The usage of one agent, user or model in the whole period. */
export type UsageRow = {
  key: string
  name: string
  count: number
  promptTokens: number
  completionTokens: number
  totalTokens: number
  cost: number
}

/** Returns the totals by agent, user or model, the largest first. */
export function sumByGrouping(totals: AiUsageTotal[], grouping: UsageGrouping, nameOf: (key: string) => string) {
  const rows = new Map<string, UsageRow>()
  for (const total of totals) {
    const key = total[grouping] ?? ''
    const row = rows.get(key) ?? {
      ...{ key, name: nameOf(key), count: 0, promptTokens: 0, completionTokens: 0, totalTokens: 0, cost: 0 },
    }
    for (const name of ['count', 'promptTokens', 'completionTokens', 'totalTokens', 'cost'] as const)
      row[name] += total[name]
    rows.set(key, row)
  }
  return [...rows.values()].sort((one, other) => other.totalTokens - one.totalTokens)
}

type ChartInput = {
  totals: AiUsageTotal[]
  rows: UsageRow[]
  steps: string[]
  grouping: UsageGrouping
  unit: UsageUnit
}

const dayWords = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' })
const monthWords = new Intl.DateTimeFormat(undefined, { month: 'short', year: 'numeric', timeZone: 'UTC' })

/** Returns a day, YYYY-MM-DD, or a month, YYYY-MM, in few words. */
const formatStep = (step: string) => (step.length > 7 ? dayWords : monthWords).format(Date.parse(step))

/** Returns the options of a chart of stacked bars: one bar for each day or month, with a part for each of the largest rows. */
export function toUsageOption({ totals, rows, steps, grouping, unit }: ChartInput): EChartProps['option'] {
  const shown = rows.slice(0, MAX_SERIES)
  const shownKeys = new Set(shown.map(({ key }) => key))
  const amounts = new Map<string, number>()
  for (const total of totals) {
    const key = total[grouping] ?? ''
    const cell = `${total.day ?? total.month} ${shownKeys.has(key) ? key : '\0'}`
    amounts.set(cell, (amounts.get(cell) ?? 0) + toAmount(total, unit))
  }
  const series = [...shown, ...(rows.length > MAX_SERIES ? [{ key: '\0', name: 'All others' }] : [])]
  return {
    grid: { left: 4, right: 16, top: 12, bottom: 32, containLabel: true },
    legend: { type: 'plain', bottom: 0, icon: 'circle', itemWidth: 8 },
    tooltip: {
      ...{ trigger: 'axis', confine: true, axisPointer: { type: 'shadow' } },
      valueFormatter: (value: unknown) => Number(value).toLocaleString(),
    },
    xAxis: { type: 'category', data: steps, axisTick: { show: false }, axisLabel: { formatter: formatStep } },
    yAxis: { type: 'value', splitNumber: 4, axisLabel: { formatter: (value: number) => compact.format(value) } },
    series: series.map(({ key, name }) => ({
      ...{ name, type: 'bar', stack: 'usage', barMaxWidth: 32 },
      data: steps.map((step) => amounts.get(`${step} ${key}`) ?? 0),
    })),
  }
}
