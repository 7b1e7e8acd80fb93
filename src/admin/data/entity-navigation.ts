import { getRouteApi, useNavigate } from '@tanstack/react-router'

const listRoute = getRouteApi('/frame/data/$blueprint')

/** Returns functions that lead back to the list or to an entity; the filters of the list stay. */
export function useEntityNavigation() {
  const { blueprint } = listRoute.useParams()
  const search = listRoute.useSearch() as never
  const navigate = useNavigate()
  return {
    blueprint,
    close: () => navigate({ to: '/data/$blueprint', params: { blueprint }, search }),
    openEntity: (identifier: string, hash?: string) =>
      navigate({ to: '/data/$blueprint/$identifier', params: { blueprint, identifier }, search, hash, replace: true }),
  }
}
