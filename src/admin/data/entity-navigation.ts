import { getRouteApi, useNavigate } from '@tanstack/react-router'

const listRoute = getRouteApi('/frame/data/$blueprint')

/** Returns where the panel leads: back to its list, or to an entity; the filters of the list stay. */
export function useEntityPlaces() {
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
