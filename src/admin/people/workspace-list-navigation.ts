import { getRouteApi, useNavigate } from '@tanstack/react-router'
import type { WorkspacesSearch } from './workspace-queries'

const route = getRouteApi('/frame/people/workspaces')

/** Returns the filters of the list of workspaces, and functions that open its panels. The filters stay in the address. */
export function useWorkspaceListNavigation() {
  const search = route.useSearch() as WorkspacesSearch & { show?: string }
  const navigate = useNavigate()
  const { show: _, ...filters } = search
  return {
    search: filters as WorkspacesSearch,
    changeSearch: (next: WorkspacesSearch) => navigate({ to: '.', search: next as never, replace: true }),
    close: () => navigate({ to: '/people/workspaces', search: filters as never }),
    openWorkspace: (workspace: string) =>
      navigate({ to: '/people/workspaces/$workspace', params: { workspace }, search: filters as never }),
    openNew: () => navigate({ to: '/people/workspaces/new', search: filters as never }),
  }
}
