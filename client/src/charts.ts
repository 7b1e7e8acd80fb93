import { type Filters, type Kind, toQueryString } from './queries'
import { type Init, type Transport, toSegment } from './transport'

/** Options of ECharts for a chart with axes. */
export type AxesChart = {
  tooltip: Record<string, unknown>
  toolbox: Record<string, unknown>
  xAxis: { type: 'category'; data: (string | number | boolean)[] }
  yAxis: Record<string, unknown>
  series: { type: string; name: string; data: (number | string)[] }[]
}
/** Options of ECharts for a pie. */
export type PieChart = {
  tooltip: Record<string, unknown>
  series: { type: 'pie'; name: string; data: { name: string | number | boolean; value: number | string }[] }[]
}
/** How moments are grouped, and in which time zone days begin. */
type TimeOptions = {
  /** Groups dates; default: by the day of the week. */
  interval?: 'hour' | 'day' | 'week' | 'month' | 'quarter' | 'year'
  /** An IANA name such as Europe/Lisbon; default: that of the app configuration, else UTC. */
  timezone?: string
}
/** The field whose values are counted, or the field that is summed up for each of them. */
export type ChartQuery<K extends Kind> = TimeOptions & {
  x: keyof K['properties'] & string
  sum?: keyof K['properties'] & string
}

/** Charts of the entities of a blueprint that match. */
export function createCharts<K extends Kind>({ request }: Transport, key: string) {
  const ask = async <Content>(type: string, query: object, filters: object, init: Init) => {
    const search = [toQueryString(filters), new URLSearchParams(query as Record<string, string>)].join('&')
    return request<Content>('GET', `/api/blueprints/${toSegment(key)}/charts/${type}`, {
      ...init,
      query: search.replace(/^&/, '?').replace(/[?&]$/, ''),
    })
  }
  const chart =
    (type: string) =>
    (query: ChartQuery<K>, filters: Filters<K> = {} as Filters<K>, init: Init = {}) =>
      ask<AxesChart>(type, query, filters, init)
  return {
    /**
     * A line for a field, as options of ECharts.
     * @example
     * const options = await client.charts('tasks').line({ x: 'due', interval: 'month' }, { done: false })
     * console.log(options.xAxis.data, options.series[0]?.data)
     */
    line: chart('line'),
    /**
     * Bars for a field, as options of ECharts.
     * @example
     * const options = await client.charts('tasks').bar({ x: 'done', sum: 'points' })
     */
    bar: chart('bar'),
    /**
     * An area for a field, as options of ECharts.
     * @example
     * const options = await client.charts('tasks').area({ x: 'points' })
     */
    area: chart('area'),
    /**
     * Points for a field, as options of ECharts.
     * @example
     * const options = await client.charts('tasks').scatter({ x: 'points' })
     */
    scatter: chart('scatter'),
    /**
     * The parts of a whole, as options of ECharts.
     * @example
     * const options = await client.charts('tasks').pie({ x: 'done' })
     * console.log(options.series[0]?.data)
     */
    pie: (query: ChartQuery<K>, filters: Filters<K> = {} as Filters<K>, init: Init = {}) =>
      ask<PieChart>('pie', query, filters, init),
    /**
     * How many entities match.
     * @example
     * const open = await client.charts('tasks').count({ done: false })
     */
    count: async (filters: Filters<K> = {} as Filters<K>, init: Init = {}) =>
      (await ask<{ count: number }>('count', {}, filters, init)).count,
    /**
     * The sum of a field, in total and by group. It is a text where a number would lose digits.
     * @example
     * const { sum, groups } = await client.charts('tasks').sum({ sum: 'points', groupBy: 'done' })
     * console.log(sum, groups)
     */
    sum: (
      query: TimeOptions & { sum: keyof K['properties'] & string; groupBy?: keyof K['properties'] & string },
      filters: Filters<K> = {} as Filters<K>,
      init: Init = {},
    ) =>
      ask<{ sum: number | string; groups?: { group: string | number | boolean; sum: number | string }[] }>(
        'sum',
        query,
        filters,
        init,
      ),
  }
}
