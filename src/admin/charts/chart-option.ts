import type { EChartProps } from '../ui/echart'
import { type ChartData, OTHERS } from './chart-data'
import type { ChartKind } from './saved-chart'

const MAX_BAR_WIDTH_PX = 40
const BAR_PITCH_PX = 26
const AXIS_HEIGHT_PX = 40
const LABEL_WIDTH_PX = 120
const OTHERS_COLOUR = '#8a9a9a'
const MIN_HEIGHT_PX = 220

const compact = new Intl.NumberFormat(undefined, { notation: 'compact' })
const grid = { left: 4, right: 16, top: 12, bottom: 4, containLabel: true }
const valueAxis = {
  type: 'value',
  minInterval: 1,
  splitNumber: 4,
  axisLabel: { formatter: (value: number) => compact.format(value) },
}
const tooltip = { confine: true, valueFormatter: (value: unknown) => Number(value).toLocaleString() }

const isSideways = (kind: ChartKind, { isOrdered }: ChartData) => kind === 'bar' && !isOrdered

/** Returns the height that a chart needs, in px: bars that lie on their side need a line each. */
export const toChartHeight = (kind: ChartKind, data: ChartData) =>
  isSideways(kind, data) ? Math.max(MIN_HEIGHT_PX, data.points.length * BAR_PITCH_PX + AXIS_HEIGHT_PX) : MIN_HEIGHT_PX

/** The names stand beside the pie, where long ones have room. */
const toPieOption = ({ points }: ChartData): EChartProps['option'] => ({
  tooltip: { ...tooltip, trigger: 'item' },
  legend: {
    ...{ type: 'scroll', orient: 'vertical', left: '58%', top: 'middle', icon: 'circle', itemWidth: 8, itemHeight: 8 },
    textStyle: { width: LABEL_WIDTH_PX, overflow: 'truncate' },
  },
  series: {
    type: 'pie',
    center: ['29%', '50%'],
    radius: ['46%', '78%'],
    label: { show: false },
    data: points.map(({ label, value }) => ({
      ...{ name: label, value },
      ...(label === OTHERS && { itemStyle: { color: OTHERS_COLOUR } }),
    })),
  },
})

/** Returns the options of ECharts for what a chart shows. Long names of groups have more room beside bars than below. */
export function toChartOption(kind: ChartKind, data: ChartData): EChartProps['option'] {
  const { points } = data
  const values = points.map(({ value }) => value)
  if (kind === 'pie') return toPieOption(data)
  const category = { type: 'category', data: points.map(({ label }) => label), axisTick: { show: false } }
  if (isSideways(kind, data))
    return {
      ...{ grid, tooltip: { ...tooltip, trigger: 'axis', axisPointer: { type: 'shadow' } } },
      xAxis: valueAxis,
      yAxis: { ...category, inverse: true, axisLabel: { width: LABEL_WIDTH_PX, overflow: 'truncate', interval: 0 } },
      series: { type: 'bar', barMaxWidth: 16, data: values },
    }
  return {
    ...{ grid, tooltip: { ...tooltip, trigger: 'axis' } },
    xAxis: { ...category, boundaryGap: kind === 'bar' },
    yAxis: valueAxis,
    series:
      kind === 'line'
        ? { type: 'line', showSymbol: points.length < 2, areaStyle: { opacity: 0.12 }, data: values }
        : { type: 'bar', barMaxWidth: MAX_BAR_WIDTH_PX, data: values },
  }
}
