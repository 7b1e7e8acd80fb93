import { useQuery } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import type { Event } from '../api/schema'
import { fillDays, firstDayShown } from './daily-values'
import { FailingJobs, failingJobsQuery } from './failing-jobs'
import { EmptyHint, FigureGroup, FigureRow } from './figure-row'

const MAX_FAILURES = 1_000

/** Where the failures of the background are listed, by the kind of their events. */
const FAILURE_LINKS: Record<string, { to: string; label: string }> = {
  plugin: { to: '/automation/plugins', label: 'failed deliveries to plugins' },
  integration: { to: '/automation/integrations', label: 'failed runs of integrations' },
  lambda: { to: '/automation/lambdas', label: 'failing lambdas at webhooks' },
}

const toDaily = (events: Event[]) => fillDays(events.map(({ created }) => [created.slice(0, 10), 1] as const))

/** What fails in the background, which admins can retry, and what failed for good lately. */
export function FailureFigures({ isAdmin }: { isAdmin: boolean }) {
  const from = firstDayShown()
  const { data, error } = useQuery({
    queryKey: ['events', 'failures', from],
    queryFn: () => {
      const query = { eventName: 'delivery-failed,lambda-failed', source: 'plugins', from, limit: MAX_FAILURES }
      return fetchData(api.GET('/api/events', { params: { query } }))
    },
    refetchInterval: 60_000,
  })
  const { data: failingJobs = [] } = useQuery({ ...failingJobsQuery, enabled: isAdmin })
  if (error) return null
  const byKind = Object.entries(Object.groupBy(data ?? [], ({ kind }) => kind))
  return (
    <FigureGroup title="Automation">
      {isAdmin && <FailingJobs />}
      {!byKind.length && !failingJobs.length && (
        <EmptyHint
          text="Nothing failed in the last 30 days."
          action="Show integrations"
          to="/automation/integrations"
        />
      )}
      {byKind.map(([kind, events = []]) => (
        <FigureRow
          key={kind}
          to={FAILURE_LINKS[kind]?.to ?? '/automation/events'}
          value={`${events.length.toLocaleString()}${data?.length === MAX_FAILURES ? '+' : ''}`}
          label={FAILURE_LINKS[kind]?.label ?? `failures of ${kind}`}
          note="in 30 days"
          trend={toDaily(events)}
          isBad
        />
      ))}
    </FigureGroup>
  )
}
