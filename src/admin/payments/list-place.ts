import { useNavigate, useSearch } from '@tanstack/react-router'

/** The filters of a list, as its address has them. */
export type AddressFilters = Record<string, string>

/** Returns where a list and its panels lead; the filters of the address stay. `list` is its address. */
export function useListPlace(list: string) {
  const search = useSearch({ strict: false }) as AddressFilters
  const navigate = useNavigate()
  const go = (to: string, next = search, replace = false) => navigate({ to, search: next, replace } as never)
  return {
    search,
    filter: (change: Record<string, string | undefined>) => {
      const next = Object.entries({ ...search, ...change }).filter(([, value]) => value !== undefined && value !== '')
      return go('.', Object.fromEntries(next) as AddressFilters, true)
    },
    close: () => go(list),
    open: (id: string, replace = false) => go(`${list}/${id}`, search, replace),
  }
}
