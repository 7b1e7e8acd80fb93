import { IconSettings } from '@tabler/icons-react'
import type { Section } from '../frame/section'

/** The section of settings of the tenant. */
export const settingsSection: Section = { label: 'Settings', path: '/settings', icon: IconSettings, pages: [] }
