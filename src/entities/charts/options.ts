import type { Static } from 'elysia'
import type { Name } from './grouping'
import type { AxesChart, PieChart } from './shapes'

/** What is shown of a group. */
export type Shown = { name: Name; value: number | string }

/** The charts with axes, as ECharts knows them. */
const series = {
  line: { type: 'line' },
  bar: { type: 'bar' },
  scatter: { type: 'scatter' },
  area: { type: 'line', areaStyle: {} },
} as const
export type Axes = keyof typeof series
export const isAxes = (type: string): type is Axes => Object.hasOwn(series, type)

const tools = { dataView: { readOnly: true }, restore: {}, saveAsImage: {} }
const changeable = { magicType: { type: ['line', 'bar'] }, ...tools }

/** @see https://echarts.apache.org/en/option.html */
export const axes = (type: Axes, name: string, groups: Shown[]): Static<typeof AxesChart> => ({
  tooltip: { trigger: type === 'scatter' ? 'item' : 'axis' },
  toolbox: { feature: type === 'scatter' ? tools : changeable },
  xAxis: { type: 'category', data: groups.map(({ name }) => name) },
  yAxis: { type: 'value' },
  // Without an x of their own, points stand at the categories in turn; with one, ECharts takes numbers for positions.
  series: [{ ...series[type], name, data: groups.map(({ value }) => value) }],
})

export const pie = (name: string, groups: Shown[]): Static<typeof PieChart> => ({
  tooltip: { trigger: 'item' },
  series: [{ type: 'pie', name, data: groups.map((group) => ({ ...group, ...spelled(group.name) })) }],
})

/** ECharts shows no name that is a boolean, unless it is told how. */
const spelled = (name: Name) =>
  typeof name === 'boolean'
    ? { label: { formatter: `${name}` }, tooltip: { formatter: `${name}: {c} ({d}%)` } }
    : undefined
