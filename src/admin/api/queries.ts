import { QueryClient, queryOptions } from '@tanstack/react-query'
import { api, fetchData } from './client'
import { connection } from './connection'
import { draftOwner } from './drafts'
import { ApiProblem, ConnectionLost } from './problem'
import { impersonation } from './session'
import { suspension } from './suspension'

const MAX_RETRIES = 2
const MAX_WAIT_S = 10 // for a rate limit; a longer wait is shown instead

const mayPass = ({ status, retryAfterS = 0 }: ApiProblem) =>
  status === 503 || (status === 429 && retryAfterS <= MAX_WAIT_S)

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      // A refusal is final; a busy server is asked again, and so is one that had too many requests.
      retry: (count, error) =>
        !(error instanceof ConnectionLost) && (!(error instanceof ApiProblem) || mayPass(error)) && count < MAX_RETRIES,
      retryDelay: (count, error) => 1_000 * ((error instanceof ApiProblem && error.retryAfterS) || 2 ** count),
    },
  },
})

// What failed while the server could not be reached, or the tenant was suspended, is fetched again.
connection.subscribe(() => {
  if (connection.get() === 'online') void queryClient.invalidateQueries()
})
suspension.subscribe(() => {
  if (suspension.get() === 'none') void queryClient.invalidateQueries()
})

/** Whether the browser may have a session: the server saw its cookie, or somebody signed in since. */
let mayHaveSession = document.getElementById('root')?.dataset.session !== undefined

/** Fetches everything anew after a sign-in, as the user who signed in. */
export async function startSession() {
  mayHaveSession = true
  impersonation.set(undefined)
  await queryClient.resetQueries()
}

/** Goes back from the user as whom an admin acts to the admin's own account. */
export async function stopImpersonation() {
  impersonation.set(undefined)
  await queryClient.resetQueries()
}

/** The signed-in user, or null when nobody is signed in. */
export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: async () => {
    if (!mayHaveSession) return null
    const me = await fetchData(api.GET('/api/me', { headers: { 'x-no-sign-in': '1' } })).catch((error) => {
      if (error instanceof ApiProblem && error.status === 401) return null
      throw error
    })
    draftOwner.set(me?._id ?? '')
    return me
  },
  staleTime: 60_000,
})

/** All blueprints that the user may see, by name. */
export const blueprintsQuery = queryOptions({
  queryKey: ['blueprints'],
  queryFn: () => fetchData(api.GET('/api/blueprints', { params: { query: { limit: 1_000, sort: 'name' } } })),
})

/** One blueprint. */
export const blueprintQuery = (key: string) =>
  queryOptions({
    queryKey: ['blueprints', key],
    queryFn: () => fetchData(api.GET('/api/blueprints/{key}', { params: { path: { key } } })),
  })

/** What the operator decided for this tenant. Only admins may read it. */
export const installationQuery = queryOptions({
  queryKey: ['installation'],
  queryFn: () => fetchData(api.GET('/api/installation')),
})
