import { Group } from '@mantine/core'
import { StateTag } from '../ui/state-tag'

/** Roles as quiet tags; `admin` stands out. */
export const RoleTags = ({ roles = [] }: { roles?: string[] }) => (
  <Group gap={4} wrap="nowrap" component="span" display="inline-flex">
    {roles.map((role) => (
      <StateTag key={role} label={role} tone={role === 'admin' ? 'warning' : 'neutral'} />
    ))}
  </Group>
)
