import { Anchor } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import { meQuery } from '../api/queries'

/** Returns the name of a user, or the beginning of the id where the name cannot be read. */
export function useUserName(id: string): string {
  const { data: me } = useQuery(meQuery)
  const isOwn = me?._id === id
  const { data: user = isOwn ? me : undefined } = useQuery({
    queryKey: ['users', 'name', id],
    queryFn: () => fetchData(api.GET('/api/users/{id}', { params: { path: { id } } })),
    staleTime: 60_000,
    retry: false,
    enabled: !isOwn && !!me?.roles.includes('admin'),
  })
  return user ? user.name || user.username : id.slice(0, 8)
}

/** A user by name, with a link to them. */
export const UserName = ({ id }: { id: string }) => (
  <Anchor component={Link} to={`/people/users/${encodeURIComponent(id)}`} size="sm">
    {useUserName(id)}
  </Anchor>
)

/** A user by name, where a link has no place. */
export const UserLabel = ({ id }: { id: string }) => useUserName(id)
