import { IconUsers } from '@tabler/icons-react'
import type { Section } from '../frame/section'

/** The section of users, roles and workspaces. */
export const peopleSection: Section = {
  label: 'People',
  path: '/people',
  icon: IconUsers,
  pages: [
    { label: 'Users', path: '/people/users', roles: ['admin'] },
    { label: 'Workspaces', path: '/people/workspaces' },
    { label: 'Roles', path: '/people/roles', roles: ['admin'] },
  ],
}
