import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import { meQuery, queryClient } from '../api/queries'

const MAX_ROWS = 1_000
const query = { limit: MAX_ROWS }

/** Whether the user has a second factor, and how many recovery codes are left. */
export const secondFactorQuery = queryOptions({
  queryKey: ['account', 'second factor'],
  queryFn: () => fetchData(api.GET('/api/me/totp')),
})

/** The passkeys of the user. */
export const passkeysQuery = queryOptions({
  queryKey: ['account', 'passkeys'],
  queryFn: () => fetchData(api.GET('/api/me/passkeys', { params: { query } })),
})

/** The accounts at sign-in providers that are linked to the user. */
export const identitiesQuery = queryOptions({
  queryKey: ['account', 'identities'],
  queryFn: () => fetchData(api.GET('/api/me/identities', { params: { query } })),
})

/** The sessions of the user, the most recently used first. */
export const sessionsQuery = queryOptions({
  queryKey: ['account', 'sessions'],
  queryFn: () => fetchData(api.GET('/api/me/sessions', { params: { query } })),
})

/** The API tokens of the user, without the tokens themselves. */
export const apiTokensQuery = queryOptions({
  queryKey: ['account', 'API tokens'],
  queryFn: () => fetchData(api.GET('/api/me/api-tokens', { params: { query } })),
})

/** Fetches everything about the user's account again after a change. */
export const refetchAccount = async () => {
  await queryClient.invalidateQueries({ queryKey: ['account'] })
  await queryClient.invalidateQueries({ queryKey: meQuery.queryKey })
}
