import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { meQuery } from '../api/queries'
import classes from './blueprint-tabs.module.css'

type BlueprintPage = { label: string; to: string; roles?: readonly string[] }

/** Who may change blueprints, and read the types that are made of them. */
const EDITORS = ['admin', 'plugin']

// No entity has the identifier "all", so that these never hide one.
const pages: readonly BlueprintPage[] = [
  { label: 'Entities', to: '/data/$blueprint' },
  { label: 'Design', to: '/data/$blueprint/all/design', roles: EDITORS },
  { label: 'API', to: '/data/$blueprint/all/api' },
]

type BlueprintTabsProps = { blueprint: string; current: 'Entities' | 'Design' | 'API' }

/** The screens of one blueprint, for the tabs of a `Screen`. */
export function BlueprintTabs({ blueprint, current }: BlueprintTabsProps) {
  const { data: me } = useQuery(meQuery)
  const shown = pages.filter(({ roles }) => !roles || roles.some((role) => me?.roles.includes(role)))
  return (
    <nav className={classes.tabs} aria-label="Blueprint">
      {shown.map(({ label, to }) => (
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
