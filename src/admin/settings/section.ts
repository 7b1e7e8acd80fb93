import { IconSettings } from '@tabler/icons-react'
import type { Section } from '../frame/section'

const roles = ['admin'] as const

/** The section of settings of the tenant. */
export const settingsSection: Section = {
  label: 'Settings',
  path: '/settings',
  icon: IconSettings,
  pages: [
    { label: 'General', path: '/settings/general', roles },
    { label: 'Hosts', path: '/settings/hosts', roles },
    { label: 'Sign-in', path: '/settings/sign-in', roles },
    { label: 'Limits', path: '/settings/limits', roles },
    { label: 'Mail', path: '/settings/mail', roles },
    { label: 'Outbox', path: '/settings/outbox', roles },
    { label: 'Definitions', path: '/settings/definitions', roles },
  ],
}
