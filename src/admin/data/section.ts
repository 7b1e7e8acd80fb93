import { IconDatabase } from '@tabler/icons-react'
import type { Section } from '../frame/section'

/** The section of blueprints and their entities. */
export const dataSection: Section = {
  label: 'Data',
  path: '/data',
  icon: IconDatabase,
  pages: [{ label: 'Blueprints', path: '/data' }],
}
