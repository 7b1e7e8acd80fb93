import { Anchor } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { meQuery } from '../api/queries'
import { userLabelQuery } from '../data/label-queries'

/** Returns the name of a user, or the beginning of the id where the name cannot be read. */
export function useUserName(id: string): string {
  const { data: me } = useQuery(meQuery)
  const own = me?._id === id ? me.fullName || me.username : undefined
  const { data: label } = useQuery({ ...userLabelQuery(id), enabled: !own && !!me?.isPrivileged })
  return own ?? label ?? id.slice(0, 8)
}

/** A user by name, with a link to them. */
export const UserName = ({ id }: { id: string }) => (
  <Anchor component={Link} to={`/people/users/${encodeURIComponent(id)}`} size="sm">
    {useUserName(id)}
  </Anchor>
)

/** A user by name, where a link is not possible. */
export const UserLabel = ({ id }: { id: string }) => useUserName(id)
