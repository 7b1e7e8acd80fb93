import { IconBolt } from '@tabler/icons-react'
import type { Section } from '../frame/section'

/** The section of what happens by itself. */
export const automationSection: Section = { label: 'Automation', path: '/automation', icon: IconBolt, pages: [] }
