import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import type { AiUsage } from '../api/schema'

const MAX_ROWS = 1_000

/** The built-in source, which repeats its input. */
export const ECHO_SOURCE_ID = 'echo'

/** All agents that the user may use, by name. */
export const agentsQuery = queryOptions({
  queryKey: ['agents', 'all'],
  queryFn: () => fetchData(api.GET('/api/ai/agents', { params: { query: { limit: MAX_ROWS, sort: 'name' } } })),
})

/** One agent. */
export const agentQuery = (id: string) =>
  queryOptions({
    queryKey: ['agents', 'one', id],
    queryFn: () => fetchData(api.GET('/api/ai/agents/{id}', { params: { path: { id } } })),
    enabled: id !== '',
  })

/** The connections to models, by name. Only admins may read them. */
export const sourcesQuery = queryOptions({
  queryKey: ['connections', 'models'],
  queryFn: () =>
    fetchData(
      api.GET('/api/integration-sources', { params: { query: { kind: 'openai', limit: MAX_ROWS, sort: 'name' } } }),
    ),
})

/** One thread with its messages. */
export const threadQuery = (id: string) =>
  queryOptions({
    queryKey: ['threads', 'one', id],
    queryFn: () => fetchData(api.GET('/api/ai/threads/{id}', { params: { path: { id } } })),
    enabled: id !== '',
  })

/** Returns the last completion of a thread, or of a source, with its cost. Only admins may read it. */
export async function fetchLatestUsage(filter: { thread?: string; source?: string; user?: string }) {
  const query = { ...filter, kind: 'completion', limit: 1 }
  const [latest] = await fetchData(api.GET('/api/ai/usage', { params: { query } }))
  return latest as AiUsage | undefined
}

/** Returns what an agent is called. */
export const toAgentName = ({ name, _id }: { name: string | null; _id: string }) => name || `Agent ${_id.slice(0, 8)}`
