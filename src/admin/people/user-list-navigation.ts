import { getRouteApi, useNavigate } from '@tanstack/react-router'
import type { UsersSearch } from './user-queries'

const route = getRouteApi('/frame/people/users')

/** Returns the filters of the list of users, and functions that open its panels. The filters stay in the address. */
export function useUserListNavigation() {
  const search = route.useSearch() as UsersSearch & { show?: string }
  const navigate = useNavigate()
  const { show: _, ...filters } = search
  return {
    search: filters as UsersSearch,
    changeSearch: (next: UsersSearch) => navigate({ to: '.', search: next as never, replace: true }),
    close: () => navigate({ to: '/people/users', search: filters as never }),
    openUser: (user: string) => navigate({ to: '/people/users/$user', params: { user }, search: filters as never }),
    openNew: () => navigate({ to: '/people/users/new', search: filters as never }),
  }
}
