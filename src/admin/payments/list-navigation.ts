import { useNavigate, useSearch } from '@tanstack/react-router'

/** The filters of a list, as its address has them. */
export type AddressFilters = Record<string, string>

/** Returns functions that lead from the list at an address to its panels and back; its filters stay. */
export function useListNavigation(listPath: string) {
  const search = useSearch({ strict: false }) as AddressFilters
  const navigate = useNavigate()
  const go = (to: string, next = search, replace = false) => navigate({ to, search: next, replace } as never)
  return {
    search,
    changeFilters: (change: Record<string, string | undefined>) => {
      const next = Object.entries({ ...search, ...change }).filter(([, value]) => value !== undefined && value !== '')
      return go('.', Object.fromEntries(next) as AddressFilters, true)
    },
    close: () => go(listPath),
    open: (id: string, replace = false) => go(`${listPath}/${id}`, search, replace),
  }
}
