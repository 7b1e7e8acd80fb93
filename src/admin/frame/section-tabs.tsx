import { Link } from '@tanstack/react-router'
import classes from './frame.module.css'
import type { Page } from './section'

/** The pages of a section, above its screen. */
export const SectionTabs = ({ pages }: { pages: readonly Page[] }) => (
  <nav className={classes.tabs} aria-label="Section">
    {pages.map(({ label, path }) => (
      <Link key={path} to={path} className={classes.tab} activeProps={{ className: classes.activeTab }}>
        {label}
      </Link>
    ))}
  </nav>
)
