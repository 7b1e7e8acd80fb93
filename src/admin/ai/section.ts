import { IconSparkles } from '@tabler/icons-react'
import type { Section } from '../frame/section'

const ADMINS = ['admin']

/** The section of agents and their knowledge. */
export const aiSection: Section = {
  label: 'AI',
  path: '/ai',
  icon: IconSparkles,
  pages: [
    { label: 'Agents', path: '/ai/agents' },
    { label: 'Playground', path: '/ai/playground' },
    { label: 'Threads', path: '/ai/threads' },
    { label: 'Knowledge', path: '/ai/knowledge', roles: ADMINS },
    { label: 'Usage', path: '/ai/usage', roles: ADMINS },
    { label: 'MCP', path: '/ai/mcp' },
  ],
}
