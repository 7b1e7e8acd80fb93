import { Anchor } from '@mantine/core'
import { Link } from '@tanstack/react-router'

/** A link to the panel of a tenant that a task has made. */
export const OpenTenant = ({ id }: { id: string }) => (
  <Anchor component={Link} to={`/operator/tenants/${id}`} size="sm">
    Open {id}
  </Anchor>
)
