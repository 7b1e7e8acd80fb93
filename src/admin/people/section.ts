import { IconUsers } from '@tabler/icons-react'
import type { Section } from '../frame/section'

/** The section of users, roles and workspaces. */
export const peopleSection: Section = { label: 'People', path: '/people', icon: IconUsers, pages: [] }
