import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import { queryClient } from '../api/queries'
import type { User, UserSummary } from '../api/schema'

const MAX_SUGGESTIONS = 20
const MAX_WORKSPACES = 100

/** What a deletion of users takes with it. */
export const USER_DELETION_TEXT =
  'This also deletes their sessions, API tokens, memberships and encrypted data. Content that they created stays.'

/** What the address says about a list of users, as the API writes it. */
export type UsersSearch = { q?: string; roles?: string; sort?: string }

/** Returns what a user is called: the full name, another name, or the username. */
export const toUserLabel = ({ fullName, name, username, _id }: UserSummary): string =>
  fullName || name || username || _id

/** All roles: the built-in ones and those that a user has. */
export const rolesQuery = queryOptions({
  queryKey: ['users', 'roles'],
  queryFn: () => fetchData(api.GET('/api/roles')),
})

/** How many users there are, by role and by when they registered or were active. */
export const userStatsQuery = queryOptions({
  queryKey: ['users', 'stats'],
  queryFn: () => fetchData(api.GET('/api/users/stats')),
})

/** One user, as admins see them. */
export const userQuery = (id: string) =>
  queryOptions({
    queryKey: ['users', 'one', id],
    queryFn: (): Promise<User> => fetchData(api.GET('/api/users/{id}', { params: { path: { id } } })),
  })

/** How a user signs in. */
export const signInStateQuery = (id: string) =>
  queryOptions({
    queryKey: ['users', 'sign-in', id],
    queryFn: () => fetchData(api.GET('/api/users/{id}/signin-state', { params: { path: { id } } })),
  })

/** The users that a choice suggests for what was typed. */
export const userSearchQuery = (q: string) =>
  queryOptions({
    queryKey: ['users', 'search', q],
    queryFn: () =>
      fetchData(
        api.GET('/api/users', { params: { query: { limit: MAX_SUGGESTIONS, sort: 'username', ...(q && { q }) } } }),
      ),
  })

/** The workspaces of a user, with their members. */
export const userWorkspacesQuery = (id: string) =>
  queryOptions({
    queryKey: ['workspaces', 'of user', id],
    queryFn: () =>
      fetchData(
        api.GET('/api/workspaces/all', {
          params: { query: { 'members.user': id, select: 'name,labels,members', sort: 'name', limit: MAX_WORKSPACES } },
        }),
      ),
  })

/** Fetches everything about users anew after a change. */
export const refetchUsers = () => queryClient.invalidateQueries({ queryKey: ['users'] })
