import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import { ApiProblem } from '../api/problem'
import { queryClient } from '../api/queries'
import type { Subscription, UserSummary } from '../api/schema'

/** Who pays: a user or a workspace. */
export type Payer = Pick<Subscription, 'billableEntityType' | 'billableEntityId'>

const MAX_SUGGESTIONS = 20

/** Returns what a user is called where there is room for one text. */
export const toUserLabel = ({ _id, fullName, name, username, email }: UserSummary) =>
  fullName || name || username || email || _id

/** The name of a payer. One that was deleted keeps its id. */
export const payerNameQuery = ({ billableEntityType: type, billableEntityId: id }: Payer) =>
  queryOptions({
    queryKey: ['payers', type, id],
    queryFn: async () => {
      const params = { path: { id } }
      try {
        return type === 'user'
          ? toUserLabel((await fetchData(api.GET('/api/users/{id}', { params }))) as UserSummary)
          : (await fetchData(api.GET('/api/workspaces/{id}', { params }))).name
      } catch (error) {
        if (!(error instanceof ApiProblem) || ![403, 404].includes(error.status)) throw error
        return `Deleted ${type} ${id.slice(0, 8)}`
      }
    },
    staleTime: 60_000,
  })

/** Returns the name of a payer. */
export const fetchPayerName = (payer: Payer) => queryClient.fetchQuery(payerNameQuery(payer))

/** The users whose names have these words, for a choice. */
export const userSearchQuery = (words: string) =>
  queryOptions({
    queryKey: ['payers', 'users', words],
    queryFn: () =>
      fetchData(api.GET('/api/users', { params: { query: { limit: MAX_SUGGESTIONS, ...(words && { q: words }) } } })),
  })

/** The workspaces, for a choice. */
export const workspaceChoiceQuery = queryOptions({
  queryKey: ['payers', 'workspaces'],
  queryFn: () => fetchData(api.GET('/api/workspaces', { params: { query: { limit: 1_000, sort: 'name' } } })),
})
