import { useMediaQuery } from '@mantine/hooks'
import { useLocation } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import classes from './frame.module.css'
import { PhoneBar } from './phone-bar'
import type { Section } from './section'
import { SectionLinks } from './section-links'

const PHONE = '(max-width: 640px)'

type PageLayoutProps = {
  sections: readonly Section[]
  /** The name of whom the pages are about, above the sections. */
  brand: ReactNode
  /** The button of the search, as the side bar or the bar of a phone shows it. */
  renderSearch?(isPhone: boolean): ReactNode
  /** What stands below the sections. */
  foot: ReactNode
  /** The screen, with what stands above and below it. */
  children: ReactNode
}

/** Returns the section of the current screen, or undefined. */
export function useCurrentSection(sections: readonly Section[]): Section | undefined {
  const { pathname } = useLocation()
  return sections.find(({ path }) => pathname === path || pathname.startsWith(`${path}/`))
}

/** The side bar, or on a phone the bar at the bottom, and the screen beside it. */
export function PageLayout({ sections, brand, renderSearch, foot, children }: PageLayoutProps) {
  const current = useCurrentSection(sections)
  const isPhone = useMediaQuery(PHONE) ?? false
  const search = renderSearch?.(isPhone)
  return (
    <>
      <a className={classes.skip} href="#screen">
        Skip to content
      </a>
      {isPhone ? (
        <PhoneBar sections={sections} current={current} search={search} foot={foot} />
      ) : (
        <nav className={classes.sidebar} aria-label="Main">
          <div className={classes.brand}>{brand}</div>
          {search}
          <SectionLinks sections={sections} current={current} />
          <div className={classes.foot}>{foot}</div>
        </nav>
      )}
      <main className={classes.main} id="screen" tabIndex={-1}>
        {children}
      </main>
    </>
  )
}
