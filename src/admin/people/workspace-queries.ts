import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import { queryClient } from '../api/queries'
import type { WorkspaceDetails } from '../api/schema'

/** What the address says about a list of workspaces, as the API writes it; `mine` leaves out those of others. */
export type WorkspacesSearch = { q?: string; labels?: string; sort?: string; mine?: string }

/** One workspace with its members and, for who administers it, its invitations. */
export const workspaceQuery = (id: string) =>
  queryOptions({
    queryKey: ['workspaces', 'one', id],
    queryFn: (): Promise<WorkspaceDetails> => fetchData(api.GET('/api/workspaces/{id}', { params: { path: { id } } })),
  })

/** The subscriptions of a workspace. */
export const workspaceSubscriptionsQuery = (id: string) =>
  queryOptions({
    queryKey: ['subscriptions', 'of workspace', id],
    queryFn: () =>
      fetchData(
        api.GET('/api/subscriptions', {
          params: { query: { billableEntityType: 'workspace', billableEntityId: id, sort: '-created' } },
        }),
      ),
  })

/** The workspaces of the signed-in user. */
export const ownWorkspacesQuery = queryOptions({
  queryKey: ['workspaces', 'own'],
  queryFn: () => fetchData(api.GET('/api/workspaces', { params: { query: { limit: 1_000, sort: 'name' } } })),
})

/** The invitations to the confirmed e-mail address of the signed-in user. */
export const invitationsQuery = queryOptions({
  queryKey: ['workspaces', 'invitations'],
  queryFn: () => fetchData(api.GET('/api/invites', { params: { query: { limit: 100 } } })),
})

/** Fetches everything about workspaces anew after a change. */
export const refetchWorkspaces = () => queryClient.invalidateQueries({ queryKey: ['workspaces'] })
