import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import { newId } from '../api/new-id'
import { ApiProblem } from '../api/problem'
import { queryClient } from '../api/queries'

/** The key of the configuration that keeps the charts of the dashboard, in order, in `metadata.charts`. */
export const DASHBOARD_CONFIGURATION = 'dashboard-configuration'
const MAX_CONFIGURATIONS = 200
const MAX_ATTEMPTS = 3

/** How a chart is drawn: `number` is one number, the others have a bar, point or slice for each group. */
export type ChartKind = 'bar' | 'line' | 'pie' | 'number'

/** The length of a group of times. */
export type ChartInterval = 'hour' | 'day' | 'week' | 'month' | 'quarter' | 'year'

/** A chart of the entities of a blueprint, as the dashboard keeps it. */
export type SavedChart = {
  /** Unique in the dashboard. */
  id: string
  title: string
  /** The key of a blueprint. */
  blueprint: string
  kind: ChartKind
  /** The numeric field whose values are added up; without it, entities are counted. */
  sum?: string
  /** The field that groups; all kinds but `number` need it. It may be `created` or `updated`. */
  groupBy?: string
  /** For a field of dates: a group for each of these, instead of one for each day of the week. */
  interval?: ChartInterval
  /** The conditions, as the query language writes them: `{"worth[$gte]": "100"}`. */
  filters?: Record<string, string>
  /** Shows only so many groups: the last ones of times, else the largest, and the others as one. */
  limit?: number
  /** How much of a line of the dashboard it takes; `half` unless it says otherwise. */
  width?: 'half' | 'full'
}

/** A chart before it is saved, which gives it an id. */
export type NewChart = Omit<SavedChart, 'id'>

const isChart = (value: unknown): value is SavedChart => {
  const { id, title, blueprint, kind } = (value ?? {}) as Partial<SavedChart>
  return [id, title, blueprint, kind].every((each) => typeof each === 'string' && each !== '')
}
const toCharts = (metadata: Record<string, unknown> = {}): SavedChart[] =>
  Array.isArray(metadata.charts) ? metadata.charts.filter(isChart) : []

// A list, because a configuration that does not exist yet would be an error.
const findDashboard = async () =>
  (await fetchData(api.GET('/api/configurations', { params: { query: { limit: MAX_CONFIGURATIONS } } }))).find(
    ({ key }) => key === DASHBOARD_CONFIGURATION,
  )

/** The charts of the dashboard, which all admins share. */
export const savedChartsQuery = queryOptions({
  queryKey: ['configurations', DASHBOARD_CONFIGURATION],
  queryFn: async () => toCharts((await findDashboard())?.metadata),
})

async function writeCharts(change: (charts: SavedChart[]) => SavedChart[]): Promise<SavedChart[]> {
  if (!(await findDashboard())) {
    const charts = change([])
    await api.POST('/api/configurations', {
      body: { key: DASHBOARD_CONFIGURATION, description: 'The charts of the dashboard.', metadata: { charts } },
    })
    return charts
  }
  const path = { key: DASHBOARD_CONFIGURATION }
  const { data, response } = await api.GET('/api/configurations/{key}', { params: { path } })
  const charts = change(toCharts(data?.metadata))
  await api.PUT('/api/configurations/{key}', {
    params: { path },
    headers: { 'if-match': response.headers.get('etag') ?? '*' },
    // What else the configuration holds stays.
    body: { metadata: { charts } },
  })
  return charts
}

const isConflict = (error: unknown) =>
  error instanceof ApiProblem && (error.status === 412 || error.code === 'CONFIGURATION_EXISTS')

/** Changes the charts of the dashboard, also while others change them. Returns them as they are then. */
export async function changeCharts(change: (charts: SavedChart[]) => SavedChart[]): Promise<SavedChart[]> {
  for (let attempt = 1; ; attempt++)
    try {
      const charts = await writeCharts(change)
      queryClient.setQueryData(savedChartsQuery.queryKey, charts)
      return charts
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !isConflict(error)) throw error
    }
}

/** Adds a chart to the end of the dashboard, or replaces the one with its id. Returns it with its id. */
export async function saveChart(chart: NewChart & { id?: string }): Promise<SavedChart> {
  const saved = { ...chart, id: chart.id ?? newId() }
  await changeCharts((charts) =>
    charts.some(({ id }) => id === saved.id)
      ? charts.map((each) => (each.id === saved.id ? { ...each, ...saved } : each))
      : [...charts, saved],
  )
  return saved
}
