import { IconHome } from '@tabler/icons-react'
import type { Section } from '../frame/section'

/** The section of what happened. */
export const homeSection: Section = {
  label: 'Home',
  path: '/home',
  icon: IconHome,
  pages: [{ label: 'Home', path: '/home', keywords: 'dashboard overview start' }],
}
