import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../../api/client'
import { queryClient } from '../../api/queries'
import type { StoredVectorStore } from '../../api/schema'
import { ECHO_SOURCE_ID, sourcesQuery } from '../ai-queries'

const MAX_ROWS = 1_000

/** A store, and the connection whose models know it. */
export type KnowledgeStore = StoredVectorStore & { source: string }

async function fetchStores(source: string): Promise<KnowledgeStore[]> {
  const params = { path: { sourceId: source }, query: { limit: MAX_ROWS } }
  const stores = await fetchData(api.GET('/api/ai/sources/{sourceId}/storage', { params }))
  return stores.map((store) => ({ ...store, source }))
}

/** The stores of all connections, newest first. */
export const storesQuery = queryOptions({
  queryKey: ['knowledge', 'stores'],
  queryFn: async () => {
    const sources = await queryClient.ensureQueryData(sourcesQuery)
    const stores = await Promise.all([ECHO_SOURCE_ID, ...sources.map(({ _id }) => _id)].map(fetchStores))
    return stores.flat().sort((one, other) => other.created.localeCompare(one.created))
  },
})

/** The files of a store, newest first. */
export const filesQuery = ({ source, _id }: { source: string; _id: string }) =>
  queryOptions({
    queryKey: ['knowledge', 'files', _id],
    queryFn: () => {
      const params = { path: { sourceId: source, id: _id }, query: { limit: MAX_ROWS } }
      return fetchData(api.GET('/api/ai/sources/{sourceId}/storage/{id}/files', { params }))
    },
  })

/** Returns the store of an agent that has a file, which citations name, or undefined. */
export async function findStoreOfFile(agent: string, file: string): Promise<KnowledgeStore | undefined> {
  const stores = await queryClient.fetchQuery(storesQuery)
  for (const store of stores.filter(({ integration }) => integration === agent)) {
    const files = await queryClient.fetchQuery(filesQuery(store))
    if (files.some(({ _id }) => _id === file)) return store
  }
}

/** Fetches everything about knowledge anew. */
export const refreshKnowledge = () => queryClient.invalidateQueries({ queryKey: ['knowledge'] })

/** What the scopes of stores are called. */
export const SCOPE_LABELS = {
  tenant: 'Everybody',
  workspace: 'A workspace',
  user: 'A user',
  thread: 'A conversation',
} as const
