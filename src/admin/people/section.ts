import { IconUsers } from '@tabler/icons-react'
import type { Section } from '../frame/section'

/** The section of users, roles and workspaces. */
export const peopleSection: Section = {
  label: 'People',
  path: '/people',
  icon: IconUsers,
  pages: [
    {
      label: 'Users',
      path: '/people/users',
      roles: ['admin'],
      keywords: 'accounts members customers invite impersonate',
    },
    { label: 'Workspaces', path: '/people/workspaces', keywords: 'teams groups organizations members' },
    { label: 'Roles', path: '/people/roles', roles: ['admin'], keywords: 'permissions access' },
  ],
  actions: [
    { label: 'New user', path: '/people/users/new', roles: ['admin'], keywords: 'create add invite account member' },
    { label: 'New workspace', path: '/people/workspaces/new', keywords: 'create add team' },
  ],
}
