import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import { queryClient } from '../api/queries'
import type { NewConfiguration } from '../api/schema'
import type { FormValues } from '../fields/field-form'
import { APP_KEY } from './configuration-fields'
import { requireJsonObject } from './json-object'
import { knownConfigurations } from './known-configurations'

/** All configurations that there are. */
export const configurationsQuery = queryOptions({
  queryKey: ['configurations', 'list'],
  queryFn: () => fetchData(api.GET('/api/configurations', { params: { query: { limit: 1_000 } } })),
})

/**
 * Returns a configuration of the server, which may not be set yet. It is looked up in the list: a request for one that does
 * not exist would be an error in the console of the browser.
 */
export const findConfiguration = async (key: string) =>
  (await queryClient.fetchQuery(configurationsQuery)).find((configuration) => configuration.key === key)

/** A configuration as its form shows it. One of the server that is not set yet is empty. */
export const configurationQuery = (key: string) =>
  queryOptions({
    queryKey: ['configurations', 'one', key],
    queryFn: async (): Promise<FormValues> => {
      if (key === APP_KEY) return fetchData(api.GET('/api/configurations/app-configuration'))
      if (key in knownConfigurations && !(await findConfiguration(key))) return { metadata: {} }
      return fetchData(api.GET('/api/configurations/{key}', { params: { path: { key } } }))
    },
  })

/** Fetches everything about configurations anew after a change. */
export const refetchConfigurations = () => queryClient.invalidateQueries({ queryKey: ['configurations'] })

/** Returns the values of a configuration as a change: keys that were removed are null. */
function toMetadataChange(before: unknown, after: Record<string, unknown>) {
  const removed = Object.keys((before as object | undefined) ?? {}).filter((key) => !(key in after))
  return { ...after, ...Object.fromEntries(removed.map((key) => [key, null])) }
}

/** Saves the values of a configuration. @throws ApiProblem */
export async function saveConfiguration(key: string, before: FormValues, { metadata, ...values }: FormValues) {
  const change = toMetadataChange(before.metadata, requireJsonObject(metadata, 'metadata'))
  const rest = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value ?? '']))
  await fetchData<unknown>(
    key === APP_KEY
      ? api.PUT('/api/configurations/app-configuration', { body: { metadata: change } })
      : api.PUT('/api/configurations/{key}', { params: { path: { key } }, body: { ...rest, metadata: change } }),
  )
  await refetchConfigurations()
}

/** Creates a configuration. @throws ApiProblem */
export async function createConfiguration({ metadata, ...values }: FormValues) {
  const sent = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
  const body = { ...sent, metadata: requireJsonObject(metadata, 'metadata') } as NewConfiguration
  const created = await fetchData(api.POST('/api/configurations', { body }))
  await refetchConfigurations()
  return created
}
