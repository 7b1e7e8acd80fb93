import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'

/** What users are called, by their ids. Only admins may list all. */
export const usersQuery = queryOptions({
  queryKey: ['users', 'names'],
  queryFn: async () => {
    const users = await fetchData(api.GET('/api/users', { params: { query: { limit: 1_000 } } }))
    return new Map(users.map(({ _id, username }) => [_id, username ?? _id]))
  },
  staleTime: 60_000,
})
