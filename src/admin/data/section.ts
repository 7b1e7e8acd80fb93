import { IconDatabase } from '@tabler/icons-react'
import type { Section } from '../frame/section'

/** The section of blueprints and their entities. */
export const dataSection: Section = {
  label: 'Data',
  path: '/data',
  icon: IconDatabase,
  pages: [{ label: 'Blueprints', path: '/data', keywords: 'tables collections schema' }],
  actions: [
    { label: 'New blueprint', path: '/blueprints/new', roles: ['admin'], keywords: 'create table collection' },
    {
      label: 'Blueprint from a file',
      path: '/blueprints/import',
      roles: ['admin'],
      keywords: 'import csv json upload create',
    },
    { label: 'Diagram of blueprints', path: '/blueprints/diagram', keywords: 'erd relations schema' },
  ],
}
