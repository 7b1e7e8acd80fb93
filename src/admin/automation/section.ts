import { IconBolt } from '@tabler/icons-react'
import type { Section } from '../frame/section'

const ADMINS = ['admin']

/** The section of lambdas, integrations, connections, plugins and events. */
export const automationSection: Section = {
  label: 'Automation',
  path: '/automation',
  icon: IconBolt,
  pages: [
    { label: 'Lambdas', path: '/automation/lambdas', roles: ADMINS },
    { label: 'Integrations', path: '/automation/integrations', roles: ADMINS },
    { label: 'Connections', path: '/automation/connections', roles: ADMINS },
    { label: 'Plugins', path: '/automation/plugins', roles: ADMINS },
    { label: 'Events', path: '/automation/events', roles: ['admin', 'editor'] },
  ],
}
