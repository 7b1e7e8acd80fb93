import { IconBolt } from '@tabler/icons-react'
import type { Section } from '../frame/section'

const ADMINS = ['admin']

/** The section of lambdas, integrations, connections, plugins and events. */
export const automationSection: Section = {
  label: 'Automation',
  path: '/automation',
  icon: IconBolt,
  pages: [
    {
      label: 'Lambdas',
      path: '/automation/lambdas',
      roles: ADMINS,
      keywords: 'code function javascript typescript serverless',
    },
    {
      label: 'Integrations',
      path: '/automation/integrations',
      roles: ADMINS,
      keywords: 'webhook schedule cron trigger automation workflow',
    },
    {
      label: 'Connections',
      path: '/automation/connections',
      roles: ADMINS,
      keywords: 'credentials secrets keys smtp model server stripe',
    },
    {
      label: 'Plugins',
      path: '/automation/plugins',
      roles: ADMINS,
      keywords: 'extension webhook delivery subscription',
    },
    {
      label: 'Events',
      path: '/automation/events',
      roles: ['admin', 'editor'],
      keywords: 'log audit activity history trash deleted',
    },
  ],
  actions: [
    { label: 'New lambda', path: '/automation/lambdas/new', roles: ADMINS, keywords: 'create code function' },
    {
      label: 'New integration',
      path: '/automation/integrations/new',
      roles: ADMINS,
      keywords: 'create webhook schedule cron trigger',
    },
    {
      label: 'New connection',
      path: '/automation/connections/new',
      roles: ADMINS,
      keywords: 'create credentials secret',
    },
    { label: 'Install a plugin', path: '/automation/plugins/new', roles: ADMINS, keywords: 'add create extension' },
  ],
}
