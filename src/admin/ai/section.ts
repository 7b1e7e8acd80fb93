import { IconSparkles } from '@tabler/icons-react'
import type { Section } from '../frame/section'

/** The section of agents and their knowledge. */
export const aiSection: Section = { label: 'AI', path: '/ai', icon: IconSparkles, pages: [] }
