import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import type { Entity } from '../api/schema'

/** The entities that one request fetches. */
export const PAGE_SIZE = 100
const MAX_SUGGESTIONS = 20

/** The conditions and options of an address that decide which entities a list has. */
export type ListSearch = Record<string, string>

const path = (key: string) => ({ path: { key } })

/** The parameters of filters are named by fields, which the description of the API does not know. */
const listEntities = async (key: string, query: Record<string, string | number | boolean>, signal?: AbortSignal) =>
  api.GET('/api/blueprints/{key}/entities', { params: { ...path(key), query: query as object }, signal })

/** How many entities a list has. */
export const entityCountQuery = (key: string, search: ListSearch) =>
  queryOptions({
    queryKey: ['entities', key, 'count', withoutOrder(search)],
    queryFn: async () => {
      const { response } = await listEntities(key, { ...withoutOrder(search), $limit: 1, $select: '_id', $count: true })
      return Number(response.headers.get('x-total-count') ?? 0)
    },
  })

/** How many entities a list has; a large number may be an estimate. */
export const entityEstimateQuery = (key: string, search: ListSearch) =>
  queryOptions({
    queryKey: ['entities', key, 'estimate', withoutOrder(search)],
    queryFn: async () => {
      const query = { ...withoutOrder(search), $limit: 1, $select: '_id', $count: 'estimate' }
      const { headers } = (await listEntities(key, query)).response
      return {
        count: Number(headers.get('x-total-count') ?? 0),
        isEstimated: headers.get('x-total-count-estimated') === 'true',
      }
    },
  })

/** Returns a number of entities as the locale writes it, such as "about 52,000". */
export const formatEstimate = ({ count, isEstimated }: { count: number; isEstimated: boolean }) =>
  isEstimated ? `about ${count.toLocaleString()}` : count.toLocaleString()

const withoutOrder = ({ $sort: _, ...rest }: ListSearch) => rest

/** One page of a list. */
export const entityPageQuery = (key: string, search: ListSearch, page: number) =>
  queryOptions({
    queryKey: ['entities', key, 'page', search, page],
    queryFn: async ({ signal }) => {
      const query = { ...search, $limit: PAGE_SIZE, $skip: page * PAGE_SIZE }
      // A page that nobody sees any more is not waited for.
      return (await fetchData(listEntities(key, query, signal))) as Entity[]
    },
    staleTime: 30_000,
    gcTime: 60_000,
  })

/** An entity with the version that was read. */
export type LoadedEntity = { entity: Entity; etag?: string }

/** One entity. */
export const entityQuery = (key: string, identifier: string) =>
  queryOptions({
    queryKey: ['entities', key, 'one', identifier],
    queryFn: async (): Promise<LoadedEntity> => {
      const { data, response } = await api.GET('/api/blueprints/{key}/entities/{identifier}', {
        params: { path: { key, identifier } },
      })
      return { entity: data as Entity, etag: response.headers.get('etag') ?? undefined }
    },
  })

/** The entities whose texts have these words, for a choice. */
export const entitySearchQuery = (key: string, words: string) =>
  queryOptions({
    queryKey: ['entities', key, 'search', words],
    queryFn: async () =>
      (await fetchData(listEntities(key, { $limit: MAX_SUGGESTIONS, ...(words && { $q: words }) }))) as Entity[],
    enabled: key !== '',
  })
