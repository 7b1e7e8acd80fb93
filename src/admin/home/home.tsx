import { Anchor } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { blueprintsQuery, meQuery } from '../api/queries'
import { EmptyState } from '../ui/empty-state'
import { Screen } from '../ui/screen'
import { AiFigures } from './ai-figures'
import { DashboardSection } from './dashboard-section'
import { DataFigures } from './data-figures'
import { FailureFigures } from './failure-figures'
import classes from './home.module.css'
import { LatestEvents } from './latest-events'
import { PaymentFigures } from './payment-figures'
import { PeopleFigures } from './people-figures'
import { StorageFigure } from './storage-figure'

/** What there is and what happened: numbers that lead to their lists, the latest events, and the charts of the dashboard. */
export function Home() {
  const { data: me } = useQuery(meQuery)
  const { data: blueprints } = useQuery(blueprintsQuery)
  const isAdmin = !!me?.isPrivileged
  const readsEvents = isAdmin || !!me?.roles.includes('editor')
  return (
    <Screen title="Home" request={{ method: 'GET', path: '/api/events' }}>
      <div className={`${classes.home} ${readsEvents ? '' : classes.narrow}`}>
        <div className={classes.figures}>
          {blueprints?.length === 0 && <NoBlueprints isAdmin={isAdmin} />}
          {!!blueprints?.length && <DataFigures blueprints={blueprints} />}
          {isAdmin && <DashboardSection blueprints={blueprints} />}
          <div className={classes.columns}>
            {isAdmin && <PeopleFigures />}
            {readsEvents && <FailureFigures isAdmin={isAdmin} />}
            {isAdmin && <AiFigures />}
            {isAdmin && <PaymentFigures />}
            {isAdmin && <StorageFigure />}
          </div>
        </div>
        {readsEvents && <LatestEvents isAdmin={isAdmin} />}
      </div>
    </Screen>
  )
}

const NoBlueprints = ({ isAdmin }: { isAdmin: boolean }) => (
  <EmptyState
    text="There are no blueprints yet. A blueprint describes one kind of data."
    action={isAdmin ? { label: 'Create a blueprint', to: '/blueprints/new' } : undefined}
  >
    {isAdmin && (
      <Anchor component={Link} to="/blueprints/import" size="sm">
        Make one from a file
      </Anchor>
    )}
  </EmptyState>
)
