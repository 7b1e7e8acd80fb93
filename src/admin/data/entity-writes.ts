import { api, fetchData } from '../api/client'
import { ApiProblem } from '../api/problem'
import { queryClient } from '../api/queries'
import type { Entity } from '../api/schema'
import type { FormValues } from '../fields/field-form'
import { forgetDeletion, trackDeletion } from './deletions'
import { patchRows, rememberOwnVersion, trackWrite } from './entity-cache'
import { entityQuery, type LoadedEntity } from './entity-queries'
import { refreshVersions } from './entity-versions'

/** Somebody else changed the same fields; `current` is the entity as they saved it. */
export class EntityConflict extends Error {
  constructor(
    readonly current: Entity,
    readonly keys: string[],
  ) {
    super('Someone else changed this while you were editing. Choose which version to keep.')
  }
}

/** Returns whether two values of a field are the same; no value is the same as null. */
export const isSameValue = (a: unknown, b: unknown) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null)

async function sendChange(key: string, identifier: string, changes: FormValues, etag?: string): Promise<LoadedEntity> {
  const { data, response } = await api.PUT('/api/blueprints/{key}/entities/{identifier}', {
    params: { path: { key, identifier } },
    body: changes as never,
    headers: etag ? { 'if-match': etag } : {},
  })
  return { entity: data as Entity, etag: response.headers.get('etag') ?? undefined }
}

/** Reads an entity anew. */
export const readEntity = (key: string, identifier: string) =>
  queryClient.fetchQuery({ ...entityQuery(key, identifier), staleTime: 0 })

/**
 * Changes an entity that was read as `before`. A change of others to other fields is no obstacle.
 * @throws EntityConflict when somebody else changed one of these fields, ApiProblem
 */
export async function changeEntity(
  key: string,
  { entity: before, etag }: LoadedEntity,
  changes: FormValues,
): Promise<Entity> {
  const { identifier } = before
  return trackWrite([identifier], async () => {
    const saved = await sendChange(key, identifier, changes, etag).catch(async (error) => {
      if (!(error instanceof ApiProblem) || error.status !== 412) throw error
      const current = await readEntity(key, identifier)
      patchRows(key, identifier, () => current.entity)
      const touched = Object.keys(changes).filter(
        (each) => !isSameValue(before[each], current.entity[each]) && !isSameValue(changes[each], current.entity[each]),
      )
      if (touched.length) throw new EntityConflict(current.entity, touched)
      return sendChange(key, identifier, changes, current.etag)
    })
    rememberOwnVersion(saved.entity)
    queryClient.setQueryData(entityQuery(key, identifier).queryKey, saved)
    patchRows(key, identifier, () => saved.entity)
    void refreshVersions(key, identifier)
    return saved.entity
  })
}

/** Creates an entity. */
export async function createEntity(key: string, values: FormValues): Promise<Entity> {
  const body = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
  const created = (await fetchData(
    api.POST('/api/blueprints/{key}/entities', { params: { path: { key } }, body: body as never }),
  )) as Entity
  rememberOwnVersion(created)
  forgetDeletion(key, created.identifier)
  return created
}

/** Deletes an entity; with an ETag, only this version of it. */
export const deleteEntity = (key: string, identifier: string, etag?: string) =>
  trackDeletion(key, identifier, () =>
    trackWrite([identifier], () =>
      fetchData(
        api.DELETE('/api/blueprints/{key}/entities/{identifier}', {
          params: { path: { key, identifier } },
          headers: etag ? { 'if-match': etag } : {},
        }),
      ),
    ),
  )
