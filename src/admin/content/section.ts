import { IconLayout } from '@tabler/icons-react'
import type { Section } from '../frame/section'

/** The section of blocks, components and configurations. */
export const contentSection: Section = { label: 'Content', path: '/content', icon: IconLayout, pages: [] }
