import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../../api/client'
import type { IntegrationSource } from '../../api/schema'

/** A connection with the `ETag` by which a change of it is refused when somebody else changed it meanwhile. */
export type LoadedConnection = { connection: IntegrationSource; etag: string }

/** All connections by name, for choices and names. */
export const connectionsQuery = queryOptions({
  queryKey: ['connections', 'all'],
  queryFn: () => fetchData(api.GET('/api/integration-sources', { params: { query: { limit: 1_000, sort: 'name' } } })),
})

/** One connection. */
export const connectionQuery = (id: string) =>
  queryOptions({
    queryKey: ['connections', 'one', id],
    queryFn: async (): Promise<LoadedConnection> => {
      const { data, response } = await api.GET('/api/integration-sources/{id}', { params: { path: { id } } })
      return { connection: data!, etag: response.headers.get('etag') ?? '' }
    },
  })
