import { type InfiniteData, queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../../api/client'
import { queryClient } from '../../api/queries'
import type { Integration, IntegrationChange } from '../../api/schema'

const RUNS_INTERVAL_MS = 2_000

const idParams = (id: string) => ({ path: { id } })

/** An integration with the `ETag` by which a change of it is refused when somebody else changed it meanwhile. */
export type LoadedIntegration = { integration: Integration; etag: string }

/** One integration. */
export const integrationQuery = (id: string) =>
  queryOptions({
    queryKey: ['integrations', 'one', id],
    queryFn: async (): Promise<LoadedIntegration> => {
      const { data, response } = await api.GET('/api/integrations/{id}', { params: idParams(id) })
      return { integration: data!, etag: response.headers.get('etag') ?? '' }
    },
  })

/** The integrations that models can use as tools, for a choice. */
export const toolsQuery = queryOptions({
  queryKey: ['integrations', 'tools'],
  queryFn: async () => {
    const query = { 'trigger.kind': 'tool', limit: 1_000 }
    const tools = await fetchData(api.GET('/api/integrations', { params: { query } }))
    return tools.map(({ _id, name, trigger }) => ({
      value: _id,
      label: name || (trigger.kind === 'tool' ? trigger.name : _id),
    }))
  },
})

/** The integrations that use a connection. */
export const connectionIntegrationsQuery = (connection: string) =>
  queryOptions({
    queryKey: ['integrations', 'of-connection', connection],
    queryFn: () => fetchData(api.GET('/api/integrations', { params: { query: { source: connection, limit: 1_000 } } })),
  })

/** The runs of an integration that wait or were given up. */
export const pendingRunsQuery = (id: string) =>
  queryOptions({
    queryKey: ['integrations', 'runs', id],
    queryFn: () =>
      fetchData(api.GET('/api/integrations/{id}/runs', { params: { ...idParams(id), query: { limit: 100 } } })),
    refetchInterval: RUNS_INTERVAL_MS,
  })

/** Puts a changed integration into all lists that show it. */
function showChange(changed: Pick<Integration, '_id'> & Partial<Integration>) {
  const merge = (each: Integration) => (each._id === changed._id ? { ...each, ...changed } : each)
  queryClient.setQueriesData<InfiniteData<{ rows: Integration[] }>>(
    { queryKey: ['integrations', 'list'] },
    (data) => data && { ...data, pages: data.pages.map((page) => ({ ...page, rows: page.rows.map(merge) })) },
  )
  queryClient.setQueryData<LoadedIntegration>(
    integrationQuery(changed._id).queryKey,
    (data) => data && { ...data, integration: merge(data.integration) },
  )
}

/** Changes an integration. What changed shows at once, and is taken back when the server refuses it. @throws ApiProblem */
export async function changeIntegration(id: string, body: IntegrationChange, etag?: string) {
  const headers = etag ? { 'if-match': etag } : {}
  try {
    return await fetchData(api.PATCH('/api/integrations/{id}', { params: idParams(id), body, headers }))
  } finally {
    await queryClient.invalidateQueries({ queryKey: ['integrations'] })
  }
}

/** Switches an integration on or off at once. @throws ApiProblem when the server refuses it, after taking it back */
export async function switchIntegration(id: string, active: boolean) {
  // What is being fetched would show the former state again.
  await queryClient.cancelQueries({ queryKey: ['integrations'] })
  showChange({ _id: id, active })
  return changeIntegration(id, { active })
}
