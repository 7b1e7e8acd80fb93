import { aiSection } from './ai/section'
import { automationSection } from './automation/section'
import { contentSection } from './content/section'
import { dataSection } from './data/section'
import type { Page, Section } from './frame/section'
import { homeSection } from './home/section'
import { paymentsSection } from './payments/section'
import { peopleSection } from './people/section'
import { settingsSection } from './settings/section'

const sections: readonly Section[] = [
  homeSection,
  dataSection,
  peopleSection,
  automationSection,
  aiSection,
  paymentsSection,
  contentSection,
  settingsSection,
]

/** Returns the pages that a user with these roles sees. */
export const filterPages = <P extends Pick<Page, 'roles'>>(pages: readonly P[], roles: readonly string[]): P[] =>
  pages.filter((page) => !page.roles || page.roles.some((role) => roles.includes(role)))

/** Returns the sections of the side bar with the pages that a user with these roles sees. */
export const listSections = (roles: readonly string[]): Section[] =>
  sections
    .map((section) => ({
      ...section,
      pages: filterPages(section.pages, roles),
      actions: filterPages(section.actions ?? [], roles),
    }))
    .filter(({ pages }) => pages.length > 0)

/** Returns the page at an address if it is for other roles than these, or undefined. */
export const findClosedPage = (pathname: string, roles: readonly string[]): Page | undefined =>
  sections
    .flatMap(({ path: sectionPath, pages }) => pages.map((page) => ({ page, isParent: page.path !== sectionPath })))
    .find(
      ({ page, isParent }) =>
        (pathname === page.path || (isParent && pathname.startsWith(`${page.path}/`))) &&
        page.roles?.every((role) => !roles.includes(role)),
    )?.page
