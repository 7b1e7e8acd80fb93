import type { Blueprint } from '../api/schema'
import { isDateField } from './chart-data'
import { CHART_INTERVALS, CHART_KINDS, describeChart, findBestGrouping } from './chart-words'
import type { ChartInterval, ChartKind, NewChart, SavedChart } from './saved-chart'

/** The words of the chart screen's address: filters as the query language writes them, and these options. */
export type ChartSearch = Record<string, string>

const OPTIONS = ['$chart', '$kind', '$x', '$sum', '$interval', '$show', '$title', '$width', '$sort']
/** The interval that no chart has: days of the week are the answer without one. */
export const WEEKDAY = 'weekday'
const DEFAULT_GROUPS: Record<ChartKind, number> = { bar: 10, line: 20, pie: 5, number: 0 }
const ALL_GROUPS = '0'

const find = <Value extends string>(choices: { value: Value }[], text?: string) =>
  choices.find(({ value }) => value === text)?.value

/** Returns the filters of an address, with the words that are searched. */
export const toChartFilters = (search: ChartSearch) =>
  Object.fromEntries(Object.entries(search).filter(([key, value]) => !OPTIONS.includes(key) && value !== ''))

/** Returns the chart that an address describes. What it leaves out is chosen by the fields of the blueprint. */
export function readChart(search: ChartSearch, blueprint: Blueprint): NewChart {
  const kind: ChartKind = find(CHART_KINDS, search.$kind) ?? 'bar'
  const best = findBestGrouping(blueprint.fields)
  const groupBy = search.$x || best.groupBy
  const field = blueprint.fields.find(({ key }) => key === groupBy)
  const isDate = isDateField(groupBy, field)
  const chosen = search.$interval === WEEKDAY ? '' : find(CHART_INTERVALS, search.$interval)
  const interval = isDate ? (chosen ?? best.interval ?? 'month') : ''
  const limit = Number(search.$show ?? (isDate ? ALL_GROUPS : DEFAULT_GROUPS[kind])) || undefined
  const grouping = kind === 'number' ? {} : { groupBy, interval: (interval || undefined) as ChartInterval, limit }
  const chart: NewChart = {
    ...{ title: '', blueprint: blueprint.key, kind, sum: search.$sum || undefined, ...grouping },
    filters: toChartFilters(search),
    width: search.$width === 'full' ? 'full' : 'half',
  }
  return { ...chart, title: search.$title || describeChart(chart, blueprint) }
}

/** Returns the address of the screen that edits a chart. */
export const toChartSearch = ({
  id,
  title,
  kind,
  groupBy,
  interval,
  sum,
  limit,
  filters,
  width,
}: SavedChart): ChartSearch => ({
  ...filters,
  ...{ $chart: id, $title: title, $kind: kind },
  ...(groupBy && { $x: groupBy, $interval: interval ?? WEEKDAY, $show: String(limit ?? ALL_GROUPS) }),
  ...(sum && { $sum: sum }),
  ...(width && { $width: width }),
})
