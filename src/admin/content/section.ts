import { IconLayout } from '@tabler/icons-react'
import type { Section } from '../frame/section'

/** The section of blocks, components, files, the site and configurations. */
export const contentSection: Section = {
  label: 'Content',
  path: '/content',
  icon: IconLayout,
  pages: [
    { label: 'Blocks', path: '/content/blocks', keywords: 'html text cms' },
    { label: 'Components', path: '/content/components', keywords: 'react jsx html' },
    { label: 'Files', path: '/content/files', keywords: 'uploads images media storage' },
    { label: 'Site', path: '/content/site', roles: ['admin'], keywords: 'website deploy hosting static front end' },
    { label: 'Configurations', path: '/content/configurations', roles: ['admin'], keywords: 'settings json' },
  ],
  actions: [
    { label: 'New block', path: '/content/blocks/new', keywords: 'create html text' },
    { label: 'New component', path: '/content/components/new', keywords: 'create react jsx' },
    {
      label: 'New configuration',
      path: '/content/configurations/-/new',
      roles: ['admin'],
      keywords: 'create settings json',
    },
  ],
}
