import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import { ApiProblem } from '../api/problem'
import { queryClient } from '../api/queries'
import type { ChosenRateLimits } from '../api/schema'
import { methodsQuery, providersQuery } from '../sign-in/provider-buttons'

/** How much of each quota the tenant uses. */
export const quotasQuery = queryOptions({ queryKey: ['quotas'], queryFn: () => fetchData(api.GET('/api/quotas')) })

/** Returns the metadata of a configuration. One that was never written has no row, and is empty. */
async function fetchConfiguration<Metadata>(configuration: string): Promise<Metadata> {
  const all = await fetchData(api.GET('/api/configurations', { params: { query: { limit: 1_000 } } }))
  return (all?.find(({ key }) => key === configuration)?.metadata ?? {}) as Metadata
}

const fetchAuthConfiguration = () => fetchConfiguration<AuthConfiguration>('auth-configuration')

/** The limits that the tenant sets for its own callers. */
export const limitsConfigurationQuery = queryOptions({
  queryKey: ['configurations', 'limits-configuration'],
  queryFn: () => fetchConfiguration<ChosenRateLimits>('limits-configuration'),
})

/** The configuration of sign-in and sign-up. */
export const authConfigurationQuery = queryOptions({
  queryKey: ['configurations', 'auth-configuration'],
  queryFn: fetchAuthConfiguration,
})

/** A sign-in provider, without its secret. */
export type Provider = { clientId: string; kind?: 'oidc'; issuer?: string; baseUrl?: string }

type AuthConfiguration = { allowSignup?: boolean; allowedReturnHosts?: string[]; providers?: Record<string, Provider> }

/** What precedes the names of fields in the paths of a refused configuration. */
const METADATA_PATH = /^\/metadata\/(providers\/[^/]*\/)?/

/** Returns the error with paths that name the fields of the form. */
function toFormProblem(error: unknown) {
  if (!(error instanceof ApiProblem)) return error
  const details = error.fieldErrors.map(({ path, message }) => ({ path: path.replace(METADATA_PATH, '/'), message }))
  return new ApiProblem(error.status, error.code, error.message, details, error.requestId)
}

/** Changes keys of a configuration that the server reads. @throws ApiProblem */
export async function changeConfiguration(key: string, metadata: Record<string, unknown>) {
  const changed = api.PUT('/api/configurations/{key}', { params: { path: { key } }, body: { metadata } })
  await changed.catch((error) => {
    throw toFormProblem(error)
  })
}

/** Changes keys of the configuration of sign-in. @throws ApiProblem */
export const changeAuthConfiguration = (metadata: Record<string, unknown>) =>
  changeConfiguration('auth-configuration', metadata)

/** Changes the providers as the server has them now. @throws ApiProblem */
export async function changeProviders(change: (providers: Record<string, Provider>) => Record<string, object>) {
  // What the page fetched before may be old, or not be there yet, and the providers are replaced as a whole.
  const { providers = {} } = await fetchAuthConfiguration()
  await changeAuthConfiguration({ providers: change(providers) })
}

/** Fetches the configuration of sign-in anew. */
export const refreshAuthConfiguration = () =>
  Promise.all(
    [authConfigurationQuery, methodsQuery, providersQuery].map(({ queryKey }) =>
      queryClient.invalidateQueries({ queryKey }),
    ),
  )

/** The templates of mails. */
export const mailTemplatesQuery = queryOptions({
  queryKey: ['mail-templates'],
  queryFn: () => fetchData(api.GET('/api/mails/templates')),
})
