import { queryOptions } from '@tanstack/react-query'
import createClient from 'openapi-fetch'
import { fetchData } from '../api/client'
import { observable } from '../api/observable'
import { ApiProblem, ConnectionLost, readProblem } from '../api/problem'
import { queryClient } from '../api/queries'
import type { paths } from '../api/schema'

/** The operator's token. It is kept in memory only, so that a reload asks for it again. */
export const operatorToken = observable<string | undefined>(undefined)

/** The operator's part of the API. A refused request throws an `ApiProblem`; a wrong token leads back to the sign-in. */
export const operatorApi = createClient<paths>({ baseUrl: location.origin, credentials: 'omit' })
operatorApi.use({
  onRequest({ request }) {
    request.headers.set('authorization', `Bearer ${operatorToken.get() ?? ''}`)
    return request
  },
  async onResponse({ response }) {
    if (response.ok) return
    if (response.status === 401) operatorToken.set(undefined)
    throw await readProblem(response)
  },
  onError: () => new ConnectionLost(),
})

/** Keeps the token if the server accepts it. @throws ApiProblem, ConnectionLost */
export async function signInOperator(token: string) {
  const response = await fetch('/operator/settings', { headers: { authorization: `Bearer ${token}` } }).catch(() => {
    throw new ConnectionLost()
  })
  if (response.status === 401)
    throw new ApiProblem(401, 'UNAUTHENTICATED', 'This is not the operator token.', null, null)
  if (!response.ok) throw await readProblem(response)
  operatorToken.set(token)
}

/** Forgets the token and everything that was fetched with it. */
export function signOutOperator() {
  operatorToken.set(undefined)
  queryClient.clear()
}

/** One tenant. */
export const tenantQuery = (id: string) =>
  queryOptions({
    queryKey: ['operator', 'tenants', id],
    queryFn: () => fetchData(operatorApi.GET('/operator/tenants/{id}', { params: { path: { id } } })),
  })

/** Fetches everything of the operator anew after a change. */
export const refetchOperator = () => queryClient.invalidateQueries({ queryKey: ['operator'] })
