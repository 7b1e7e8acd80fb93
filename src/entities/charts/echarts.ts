import type { Static } from 'elysia'
import type { GroupName } from './grouping'
import type { AxesChart, PieChart } from './shapes'

/** The data point of a group. */
export type DataPoint = { name: GroupName; value: number | string }

/** The charts with axes, with their ECharts options. */
const SERIES_OPTIONS = {
  line: { type: 'line' },
  bar: { type: 'bar' },
  scatter: { type: 'scatter' },
  area: { type: 'line', areaStyle: {} },
} as const
export type AxesType = keyof typeof SERIES_OPTIONS
export const AXES_TYPES = Object.keys(SERIES_OPTIONS)
export const isAxesType = (type: string): type is AxesType => Object.hasOwn(SERIES_OPTIONS, type)

const TOOLS = { dataView: { readOnly: true }, restore: {}, saveAsImage: {} }
const TOOLS_WITH_TYPES = { magicType: { type: ['line', 'bar'] }, ...TOOLS }

/** @see https://echarts.apache.org/en/option.html */
export const toAxesOption = (type: AxesType, name: string, groups: DataPoint[]): Static<typeof AxesChart> => ({
  tooltip: { trigger: type === 'scatter' ? 'item' : 'axis' },
  toolbox: { feature: type === 'scatter' ? TOOLS : TOOLS_WITH_TYPES },
  xAxis: { type: 'category', data: groups.map(({ name }) => name) },
  yAxis: { type: 'value' },
  // Points without an x follow the order of the categories; with one, ECharts would read numbers as positions.
  series: [{ ...SERIES_OPTIONS[type], name, data: groups.map(({ value }) => value) }],
})

export const toPieOption = (name: string, groups: DataPoint[]): Static<typeof PieChart> => ({
  tooltip: { trigger: 'item' },
  series: [{ type: 'pie', name, data: groups.map((group) => ({ ...group, ...booleanLabel(group.name) })) }],
})

/** ECharts needs a formatter to show a boolean name. */
const booleanLabel = (name: GroupName) =>
  typeof name === 'boolean'
    ? { label: { formatter: `${name}` }, tooltip: { formatter: `${name}: {c} ({d}%)` } }
    : undefined
