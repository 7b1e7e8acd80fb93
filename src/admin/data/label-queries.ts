import { queryOptions } from '@tanstack/react-query'
import { writeList } from '../../core/list-text'
import { createBatchLoader } from '../api/batch-loader'
import { api, fetchData } from '../api/client'
import { blueprintsQuery, meQuery, queryClient } from '../api/queries'
import type { Entity } from '../api/schema'
import { listLabelKeys, toEntityLabel } from './entity-label'

const MAX_NAMES = 100
const STALE_MS = 60_000

const loaders = new Map<string, (name: string) => Promise<string | undefined>>()

const fetchEntityLabels = (blueprint: string) => async (names: string[]) => {
  const blueprints = await queryClient.ensureQueryData(blueprintsQuery)
  const keys = blueprints.filter(({ key }) => key === blueprint).flatMap(listLabelKeys)
  const $select = ['identifier', ...keys].join(',')
  const query = { 'identifier[$in]': writeList(names), $select, $limit: MAX_NAMES }
  const request = { params: { path: { key: blueprint }, query } }
  const entities = (await fetchData(api.GET('/api/blueprints/{key}/entities', request))) as Entity[]
  return new Map(entities.map((entity) => [entity.identifier, toEntityLabel(entity)]))
}

function findLoader(blueprint: string) {
  const loader = loaders.get(blueprint) ?? createBatchLoader(fetchEntityLabels(blueprint), MAX_NAMES)
  loaders.set(blueprint, loader)
  return loader
}

/** What an entity is called; null when it is not there or may not be read. */
export const entityLabelQuery = (blueprint: string, identifier: string) =>
  queryOptions({
    queryKey: ['entities', blueprint, 'label', identifier],
    queryFn: async () => (await findLoader(blueprint)(identifier)) ?? null,
    staleTime: STALE_MS,
    retry: false,
  })

const loadUser = createBatchLoader(async (ids) => {
  // Only admins may read users.
  if (!queryClient.getQueryData(meQuery.queryKey)?.isPrivileged) return new Map<string, string>()
  const query = { _id: ids.join(','), limit: MAX_NAMES, select: 'username,fullName' }
  const users = await fetchData(api.GET('/api/users', { params: { query } }))
  return new Map(users.map(({ _id, fullName, username }) => [_id, fullName || username || _id]))
}, MAX_NAMES)

/** What a user is called; null when the caller may not read them. */
export const userLabelQuery = (id: string) =>
  queryOptions({
    queryKey: ['users', 'label', id],
    queryFn: async () => (await loadUser(id)) ?? null,
    staleTime: STALE_MS,
    retry: false,
  })

const loadWorkspace = createBatchLoader(async () => {
  const workspaces = await fetchData(api.GET('/api/workspaces', { params: { query: { limit: 1_000 } } }))
  return new Map(workspaces.map(({ _id, name }) => [_id, name]))
}, MAX_NAMES)

/** What a workspace is called; null when the caller may not read it. */
export const workspaceLabelQuery = (id: string) =>
  queryOptions({
    queryKey: ['workspaces', 'label', id],
    queryFn: async () => (await loadWorkspace(id)) ?? null,
    staleTime: STALE_MS,
    retry: false,
  })
