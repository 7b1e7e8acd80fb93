import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import type { Blueprint } from '../api/schema'

/** A blueprint with the version that a change is compared with. */
export type SavedBlueprint = { blueprint: Blueprint; etag?: string }

/** One blueprint with its version. */
export const savedBlueprintQuery = (key: string) =>
  queryOptions({
    queryKey: ['blueprints', key, 'saved'],
    queryFn: async (): Promise<SavedBlueprint> => {
      const { data, response } = await api.GET('/api/blueprints/{key}', { params: { path: { key } } })
      return { blueprint: data as Blueprint, etag: response.headers.get('etag') ?? undefined }
    },
  })

const POLL_INTERVAL_MS = 1_000

/** How far a change of the entities of a blueprint is, asked for again as long as it goes on. */
export const alterationQuery = (key: string, isSaving: boolean) =>
  queryOptions({
    queryKey: ['blueprints', key, 'alteration'],
    queryFn: async () =>
      (await fetchData(api.GET('/api/blueprints/{key}', { params: { path: { key } } }))).alteration ?? null,
    refetchInterval: ({ state }) => (isSaving || state.data?.state === 'preparing' ? POLL_INTERVAL_MS : false),
  })

/** The indexes of the fields of a blueprint, asked for again as long as one is built or removed. Only editors see them. */
export const fieldIndexesQuery = (key: string) =>
  queryOptions({
    queryKey: ['blueprints', key, 'indexes'],
    queryFn: () => fetchData(api.GET('/api/blueprints/{key}/indexes', { params: { path: { key } } })),
    refetchInterval: ({ state: { data = [] } }) =>
      data.some(({ state }) => state !== 'ready') ? POLL_INTERVAL_MS : false,
  })

/** The roles that users have, for suggestions. Only administrators see them. */
export const roleNamesQuery = queryOptions({
  queryKey: ['roles', 'names'],
  queryFn: () => fetchData(api.GET('/api/roles', { headers: { 'x-no-sign-in': '1' } })).catch(() => [] as string[]),
  staleTime: 60_000,
})
