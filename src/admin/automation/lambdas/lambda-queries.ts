import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../../api/client'
import { queryClient } from '../../api/queries'
import type { Lambda, LambdaChange } from '../../api/schema'

const LOG_INTERVAL_MS = 1_000
const RUNS_SHOWN = 50
const MAX_VERSIONS = 50

const idParams = (id: string) => ({ path: { id } })

/** A lambda with the `ETag` by which a change of it is refused when somebody else changed it meanwhile. */
export type LoadedLambda = { lambda: Lambda; etag: string }

const toLoaded = async (answer: Promise<{ data?: Lambda; response: Response }>): Promise<LoadedLambda> => {
  const { data, response } = await answer
  return { lambda: data!, etag: response.headers.get('etag') ?? '' }
}

/** One lambda. */
export const lambdaQuery = (id: string) =>
  queryOptions({
    queryKey: ['lambdas', 'one', id],
    queryFn: () => toLoaded(api.GET('/api/lambdas/{id}', { params: idParams(id) })),
  })

/** All lambdas by name, for a choice. */
export const lambdaChoicesQuery = queryOptions({
  queryKey: ['lambdas', 'choices'],
  queryFn: async () => {
    const lambdas = await fetchData(api.GET('/api/lambdas', { params: { query: { limit: 1_000, sort: 'name' } } }))
    return lambdas.map(({ _id, name }) => ({ value: _id, label: name }))
  },
})

/** How often each lambda ran and failed. */
export const runSummariesQuery = queryOptions({
  queryKey: ['lambdas', 'runs'],
  queryFn: async () => {
    const summaries = await fetchData(api.GET('/api/lambdas/runs'))
    return new Map(summaries.map((summary) => [summary.lambda, summary]))
  },
  refetchInterval: 5_000,
})

/** The versions of a lambda's code, newest first. */
export const versionsQuery = (id: string) =>
  queryOptions({
    queryKey: ['lambdas', 'versions', id],
    queryFn: () =>
      fetchData(api.GET('/api/lambdas/{id}/versions', { params: { ...idParams(id), query: { limit: MAX_VERSIONS } } })),
  })

const fetchRuns = (id: string, limit: number) =>
  fetchData(api.GET('/api/lambdas/{id}/logs', { params: { ...idParams(id), query: { limit } } }))

/** The id of the newest run of a lambda, asked for every second while somebody looks. */
export const newestRunQuery = (id: string) =>
  queryOptions({
    queryKey: ['lambdas', 'newest-run', id],
    queryFn: async () => (await fetchRuns(id, 1))[0]?._id ?? '',
    refetchInterval: LOG_INTERVAL_MS,
  })

/** The last runs of a lambda up to this one. */
export const runsQuery = (id: string, newest: string) =>
  queryOptions({
    queryKey: ['lambdas', 'log', id, newest],
    queryFn: () => fetchRuns(id, RUNS_SHOWN),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })

/** The integrations that run a lambda. */
export const lambdaIntegrationsQuery = (id: string) =>
  queryOptions({
    queryKey: ['integrations', 'of-lambda', id],
    queryFn: async () => {
      const query = { 'target.kind': 'lambda', limit: 1_000 }
      const all = await fetchData(api.GET('/api/integrations', { params: { query } }))
      return all.filter(({ target }) => target.kind === 'lambda' && target.lambdaId === id)
    },
  })

/** Shows a changed lambda everywhere. */
export async function showChangedLambda(loaded: LoadedLambda) {
  const { _id } = loaded.lambda
  queryClient.setQueryData(lambdaQuery(_id).queryKey, loaded)
  await Promise.all(
    [versionsQuery(_id).queryKey, ['lambdas', 'list'], ['lambdas', 'choices']].map((queryKey) =>
      queryClient.invalidateQueries({ queryKey }),
    ),
  )
}

/** Changes a lambda, unless somebody else changed it meanwhile. @throws ApiProblem */
export async function changeLambda({ lambda: { _id }, etag }: LoadedLambda, body: LambdaChange) {
  const headers = { 'if-match': etag }
  const changed = await toLoaded(api.PATCH('/api/lambdas/{id}', { params: idParams(_id), body, headers }))
  await showChangedLambda(changed)
  return changed
}

/** Makes an earlier version of the code the newest. @throws ApiProblem */
export async function restoreVersion({ lambda: { _id }, etag }: LoadedLambda, version: number) {
  const headers = { 'if-match': etag }
  const restored = await toLoaded(
    api.POST('/api/lambdas/{id}/rollback', { params: idParams(_id), body: { version }, headers }),
  )
  await showChangedLambda(restored)
  return restored
}
