import { IconSettings } from '@tabler/icons-react'
import type { Section } from '../frame/section'

const roles = ['admin'] as const

/** The section of settings of the tenant. */
export const settingsSection: Section = {
  label: 'Settings',
  path: '/settings',
  icon: IconSettings,
  pages: [
    { label: 'General', path: '/settings/general', roles, keywords: 'name logo colour color brand time zone timezone' },
    { label: 'Hosts', path: '/settings/hosts', roles, keywords: 'domain dns certificate https url website' },
    {
      label: 'Sign-in',
      path: '/settings/sign-in',
      roles,
      keywords: 'sign-up registration password passkey google openid oauth provider 2fa',
    },
    { label: 'Limits', path: '/settings/limits', roles, keywords: 'quota storage rate usage' },
    { label: 'Mail', path: '/settings/mail', roles, keywords: 'templates e-mail smtp' },
    { label: 'Outbox', path: '/settings/outbox', roles, keywords: 'sent mails e-mail failed' },
    {
      label: 'Definitions',
      path: '/settings/definitions',
      roles,
      keywords: 'export pull push diff schema migration version control git',
    },
  ],
  actions: [
    { label: 'Add a host', path: '/settings/hosts/new', roles, keywords: 'domain dns website' },
    {
      label: 'Add a sign-in provider',
      path: '/settings/sign-in/providers/new',
      roles,
      keywords: 'google openid oauth sso',
    },
  ],
}
