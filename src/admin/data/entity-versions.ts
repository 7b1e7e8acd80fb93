import { api, fetchData } from '../api/client'
import { queryClient } from '../api/queries'
import type { Entity, operations } from '../api/schema'
import { useListRows } from '../ui/list-rows'
import { refreshLists, rememberOwnVersion, trackWrite } from './entity-cache'
import { entityQuery, type LoadedEntity } from './entity-queries'

const PAGE_SIZE = 20

/** A version of an entity: who made it and when, and the values before and after it. */
export type EntityVersion = operations['listEntityVersions']['responses'][200]['content']['application/json'][number]

/** Beneath the key of the entity, so that what fetches the entity again fetches its versions, too. */
const versionsKey = (key: string, identifier: string) => [...entityQuery(key, identifier).queryKey, 'versions']

/** The versions of an entity, the latest first. */
export const useEntityVersions = (key: string, identifier: string) =>
  useListRows<EntityVersion>(versionsKey(key, identifier), ({ $after }) =>
    api.GET('/api/blueprints/{key}/entities/{identifier}/history', {
      params: { path: { key, identifier }, query: { $limit: PAGE_SIZE, $after } },
    }),
  )

/**
 * Changes an entity to what it was after a version. Both are fetched again afterwards, also after a refusal.
 * @throws ApiProblem; 412 when somebody else changed the entity since it was read
 */
export async function restoreVersion(
  key: string,
  { entity: { identifier }, etag }: LoadedEntity,
  { version }: EntityVersion,
): Promise<void> {
  try {
    await trackWrite([identifier], async () => {
      const restored = await fetchData(
        api.POST('/api/blueprints/{key}/entities/{identifier}/history/{version}/restore', {
          params: { path: { key, identifier, version: `${version}` } },
          headers: etag ? { 'if-match': etag } : {},
        }),
      )
      rememberOwnVersion(restored as Entity)
    })
  } finally {
    await refreshLists(key)
  }
}

/** Fetches the versions of an entity again after a change. */
export const refreshVersions = (key: string, identifier: string) =>
  queryClient.invalidateQueries({ queryKey: versionsKey(key, identifier) })
