import { Link } from '@tanstack/react-router'
import { BLUEPRINT_ROLES, useHasRole } from '../api/roles'
import classes from './blueprint-tabs.module.css'

type BlueprintPage = { label: string; to: string; isForDesigners?: boolean }

// No entity has the identifier "all", so that these never hide one.
const pages: readonly BlueprintPage[] = [
  { label: 'Entities', to: '/data/$blueprint' },
  { label: 'Design', to: '/data/$blueprint/all/design', isForDesigners: true },
  { label: 'API', to: '/data/$blueprint/all/api' },
]

type BlueprintTabsProps = { blueprint: string; current: 'Entities' | 'Design' | 'API' }

/** The screens of one blueprint, for the tabs of a `Screen`. */
export function BlueprintTabs({ blueprint, current }: BlueprintTabsProps) {
  const isDesigner = useHasRole(BLUEPRINT_ROLES)
  const visiblePages = pages.filter(({ isForDesigners }) => !isForDesigners || isDesigner)
  return (
    <nav className={classes.tabs} aria-label="Blueprint">
      {visiblePages.map(({ label, to }) => (
        <Link
          key={label}
          to={to}
          params={{ blueprint } as never}
          className={`${classes.tab} ${label === current ? classes.current : ''}`}
          aria-current={label === current ? 'page' : undefined}
        >
          {label}
        </Link>
      ))}
    </nav>
  )
}
