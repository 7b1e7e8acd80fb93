import { getRouteApi, useNavigate } from '@tanstack/react-router'
import type { UsersSearch } from './user-queries'

const route = getRouteApi('/frame/people/users')

/** Returns where the list of users is and leads; its filters stay in the address. */
export function useUserListPlace() {
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
