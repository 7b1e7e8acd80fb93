import {
  IconBolt,
  IconBrain,
  IconCreditCard,
  IconDatabase,
  IconFileText,
  IconHome,
  IconSettings,
  IconUsers,
  type TablerIcon,
} from '@tabler/icons-react'

/** A part of the page in the side bar. */
export type Section = {
  label: string
  path: string
  icon: TablerIcon
  /** Only users with one of these roles see it; the server decides about each request anyway. */
  roles?: string[]
}

export const sections: Section[] = [
  { label: 'Home', path: '/home', icon: IconHome },
  { label: 'Data', path: '/data', icon: IconDatabase },
  { label: 'People', path: '/people', icon: IconUsers, roles: ['admin'] },
  { label: 'Automation', path: '/automation', icon: IconBolt, roles: ['admin', 'editor'] },
  { label: 'AI', path: '/ai', icon: IconBrain },
  { label: 'Payments', path: '/payments', icon: IconCreditCard, roles: ['admin'] },
  { label: 'Content', path: '/content', icon: IconFileText, roles: ['admin', 'editor'] },
  { label: 'Settings', path: '/settings', icon: IconSettings, roles: ['admin'] },
]
