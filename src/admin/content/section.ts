import { IconLayout } from '@tabler/icons-react'
import type { Section } from '../frame/section'

/** The section of blocks, components, files, the site and configurations. */
export const contentSection: Section = {
  label: 'Content',
  path: '/content',
  icon: IconLayout,
  pages: [
    { label: 'Blocks', path: '/content/blocks' },
    { label: 'Components', path: '/content/components' },
    { label: 'Files', path: '/content/files' },
    { label: 'Site', path: '/content/site', roles: ['admin'] },
    { label: 'Configurations', path: '/content/configurations', roles: ['admin'] },
  ],
}
