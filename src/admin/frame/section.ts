import type { TablerIcon } from '@tabler/icons-react'

/** One screen of a section. */
export type Page = {
  label: string
  path: string
  /** Filters in its address, such as which part is open. */
  search?: Record<string, string>
  /** Further words by which the command palette finds it. */
  keywords?: string
  /** Only users with one of these roles see it; the server decides about each request anyway. */
  roles?: readonly string[]
}

/** A part of the page in the side bar. Its link leads to its first page, and the pages stand as tabs above the screen. */
export type Section = {
  label: string
  /** What the addresses of its screens begin with. */
  path: string
  icon: TablerIcon
  pages: readonly Page[]
  /** Screens that begin something. The command palette finds them. */
  actions?: readonly Page[]
}
