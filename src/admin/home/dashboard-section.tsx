import { Button, Skeleton } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import type { Blueprint } from '../api/schema'
import { savedChartsQuery } from '../charts/saved-chart'
import { ProblemMessage } from '../ui/problem-message'
import { EmptyHint } from './figure-row'
import classes from './home.module.css'

const Dashboard = lazy(async () => ({ default: (await import('../charts/dashboard')).Dashboard }))
const CHART_HEIGHT_PX = 220

/** The charts that all admins share, or how to make the first. */
export function DashboardSection({ blueprints = [] }: { blueprints?: Blueprint[] }) {
  const { data: charts, error } = useQuery(savedChartsQuery)
  const first = blueprints[0]?.key
  if (error) return <ProblemMessage error={error} />
  if (!charts || (!first && !charts.length)) return null
  return (
    <section className={classes.dashboard} aria-label="Charts">
      <header className={classes.dashboardHeader}>
        <h2 className={classes.heading}>Charts</h2>
        {charts.length > 0 && first && (
          <Button
            component={Link}
            to={`/data/${first}/all/chart`}
            variant="subtle"
            color="gray"
            size="compact-xs"
            leftSection={<IconPlus size={14} />}
          >
            New chart
          </Button>
        )}
      </header>
      {charts.length > 0 ? (
        <div className={classes.charts}>
          <Suspense fallback={<Skeleton height={CHART_HEIGHT_PX} animate={false} />}>
            <Dashboard charts={charts} blueprints={blueprints} />
          </Suspense>
        </div>
      ) : (
        <EmptyHint text="There are no charts yet." action="Draw the first" to={`/data/${first}/all/chart`} />
      )}
    </section>
  )
}
