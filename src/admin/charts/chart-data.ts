import { queryOptions } from '@tanstack/react-query'
import { writeList } from '../../core/list-text'
import { api, fetchData } from '../api/client'
import type { Entity, Field } from '../api/schema'
import { toEntityLabel } from '../data/entity-label'
import type { ApiRequest } from '../ui/api-button'
import { nameGroup } from './group-name'
import type { NewChart } from './saved-chart'

const MAX_LABELLED_RELATIONS = 50
/** The name of the groups that are shown as one. */
export const OTHERS = 'Others'

/** One bar, point or slice. `value` may have lost digits; `exact` has them all. */
export type ChartPoint = { label: string; value: number; exact: string }

/** What a chart shows. */
export type ChartData = {
  points: ChartPoint[]
  /** The one number of the kind `number`. */
  total: ChartPoint
  /** Whether groups follow an order of their own, such as time, so that they are not sorted by their size. */
  isOrdered: boolean
}

type Group = { name: string | number | boolean; amount: string | number }

const TIME_TYPES: Field['type'][] = ['date', 'datetime', 'time']
const ORDERED_TYPES: Field['type'][] = [...TIME_TYPES, 'number', 'integer', 'decimal']
const SYSTEM_TIMES = ['created', 'updated']

/** Whether a field groups by intervals. */
export const isDateField = (key: string | undefined, field?: Field) =>
  field ? field.type === 'date' || field.type === 'datetime' : SYSTEM_TIMES.includes(key ?? '')

/** Returns the request that a chart makes. */
export function toChartRequest({ blueprint, kind, sum, groupBy, interval, filters }: NewChart): ApiRequest {
  const type = kind === 'number' ? (sum ? 'sum' : 'count') : kind
  const grouping = kind === 'number' ? {} : { x: groupBy ?? '', ...(interval && { interval }) }
  return {
    method: 'GET',
    path: `/api/blueprints/${blueprint}/charts/${type}`,
    query: { ...filters, ...(sum && { sum }), ...grouping },
  }
}

async function fetchGroups(chart: NewChart): Promise<{ total?: string | number; groups: Group[] }> {
  const params = { path: { key: chart.blueprint }, query: toChartRequest(chart).query as never }
  if (chart.kind === 'number') {
    if (!chart.sum)
      return { groups: [], total: (await fetchData(api.GET('/api/blueprints/{key}/charts/count', { params }))).count }
    return { groups: [], total: (await fetchData(api.GET('/api/blueprints/{key}/charts/sum', { params }))).sum }
  }
  if (chart.kind === 'pie') {
    const { series } = await fetchData(api.GET('/api/blueprints/{key}/charts/pie', { params }))
    return { groups: (series[0]?.data ?? []).map(({ name, value }) => ({ name, amount: value })) }
  }
  const path = { key: chart.blueprint, type: chart.kind }
  const { xAxis, series } = await fetchData(
    api.GET('/api/blueprints/{key}/charts/{type}', { params: { ...params, path } }),
  )
  return { groups: xAxis.data.map((name, n) => ({ name, amount: series[0]?.data[n] ?? 0 })) }
}

const toPoint = (label: string, amount: string | number): ChartPoint => ({
  ...{ label, value: Number(amount) },
  exact: typeof amount === 'string' ? amount : amount.toLocaleString(),
})

/** Returns the groups that fit: the last of times, else the largest, with all others as one. */
export function limitPoints(points: ChartPoint[], limit: number | undefined, isTime: boolean): ChartPoint[] {
  if (!limit || points.length <= limit) return points
  if (isTime) return points.slice(-limit)
  const largest = new Set([...points].sort((a, b) => b.value - a.value).slice(0, limit))
  const othersSum = points.filter((point) => !largest.has(point)).reduce((sum, { value }) => sum + value, 0)
  return [...points.filter((point) => largest.has(point)), toPoint(OTHERS, Number(othersSum.toPrecision(12)))]
}

/** Returns what the entities of a relation are called, by their identifiers. */
async function fetchRelationLabels({ type, target }: Field, names: string[]): Promise<Map<string, string>> {
  if (type !== 'relation' || !target || names.length > MAX_LABELLED_RELATIONS) return new Map()
  const query = { 'identifier[$in]': writeList(names), $limit: MAX_LABELLED_RELATIONS }
  const answer = api.GET('/api/blueprints/{key}/entities', {
    params: { path: { key: target }, query: query as object },
  })
  const entities = ((await fetchData(answer).catch(() => [])) ?? []) as Entity[]
  return new Map(entities.map((entity) => [entity.identifier, toEntityLabel(entity)]))
}

/** The server calls the group of entities without a value “Unknown”, and puts it last. */
const isWithoutValue = (name: unknown, index: number, groups: Group[]) =>
  name === 'Unknown' && index === groups.length - 1

async function fetchChart(chart: NewChart, field?: Field): Promise<ChartData> {
  const { groups, total = 0 } = await fetchGroups(chart)
  const isTime = isDateField(chart.groupBy, field) || field?.type === 'time'
  const isOrdered = isTime || (!!field && ORDERED_TYPES.includes(field.type))
  const namedPoints = groups.map(({ name, amount }, n) =>
    toPoint(isWithoutValue(name, n, groups) ? 'No value' : nameGroup(name, chart, field), amount),
  )
  const sorted = isOrdered ? namedPoints : namedPoints.sort((a, b) => b.value - a.value)
  const points = limitPoints(sorted, chart.limit, isTime)
  const labels =
    field &&
    (await fetchRelationLabels(
      field,
      points.map(({ label }) => label),
    ))
  return {
    points: points.map((point) => ({ ...point, label: labels?.get(point.label) ?? point.label })),
    total: toPoint('', total),
    isOrdered,
  }
}

/** What a chart shows, as its entities are now. `field` is the one that groups. */
export const chartDataQuery = (chart: NewChart, field?: Field) =>
  queryOptions({
    queryKey: ['entities', chart.blueprint, 'chart', toChartRequest(chart), chart.limit, field?.type],
    queryFn: () => fetchChart(chart, field),
    staleTime: 30_000,
  })
