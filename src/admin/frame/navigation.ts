import { IconDatabase, IconHome, type TablerIcon } from '@tabler/icons-react'

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
]
