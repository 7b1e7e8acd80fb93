import { Button } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import { queryClient } from '../api/queries'
import type { FailingJob } from '../api/schema'
import { showNotice, showProblem } from '../ui/notices'
import { RelativeTime } from '../ui/relative-time'
import classes from './failing-jobs.module.css'

const POLL_INTERVAL_MS = 5_000
const JOBS_SHOWN = 5

/** The background jobs that will be retried, the next attempt first. */
export const failingJobsQuery = {
  queryKey: ['jobs', 'failing'],
  queryFn: () => fetchData(api.GET('/api/jobs/failing')),
  refetchInterval: POLL_INTERVAL_MS,
}

const SUBJECTS = {
  plugin: { label: 'Delivery to', toLink: (id: string) => `/automation/plugins/${id}`, tab: 'deliveries' },
  integration: { label: 'Run of', toLink: (id: string) => `/automation/integrations/${id}`, tab: 'runs' },
  mail: { label: 'Mail to', toLink: () => '/settings/outbox', tab: undefined },
}

/** What fails in the background right now, each with a button that retries it. */
export function FailingJobs() {
  const { data: jobs = [] } = useQuery(failingJobsQuery)
  if (!jobs.length) return null
  const more = jobs.length - JOBS_SHOWN
  return (
    <ul className={classes.jobs} aria-label="Failing now">
      {jobs.slice(0, JOBS_SHOWN).map((job) => (
        <FailingJobLine key={job._id} job={job} />
      ))}
      {more > 0 && <li className={classes.more}>and {more.toLocaleString()} more that will be retried</li>}
    </ul>
  )
}

function FailingJobLine({ job }: { job: FailingJob }) {
  const { _id, attempts, error, waiting, nextAttempt } = job
  const retry = useMutation({
    mutationFn: () => fetchData(api.POST('/api/jobs/{id}/retry', { params: { path: { id: _id } } })),
    onSuccess: () => showNotice('Retrying now.'),
    onError: showProblem,
    onSettled: () => queryClient.invalidateQueries({ queryKey: ['jobs'] }),
  })
  return (
    <li className={classes.job}>
      <span className={classes.words}>
        <JobTitle job={job} />
        <span className={classes.error} title={error ?? undefined}>
          {error ?? 'It failed.'}
        </span>
        <span className={classes.note}>
          {attempts} failed {attempts === 1 ? 'attempt' : 'attempts'}, next <RelativeTime time={nextAttempt} />
          {waiting > 0 && `, ${waiting.toLocaleString()} waiting behind it`}
        </span>
      </span>
      <Button size="compact-sm" variant="default" onClick={() => retry.mutate()} loading={retry.isPending}>
        Retry now
      </Button>
    </li>
  )
}

function JobTitle({ job: { subject, kind } }: { job: FailingJob }) {
  if (!subject) return <span className={classes.title}>Job “{kind}”</span>
  const { label, toLink, tab } = SUBJECTS[subject.kind]
  return (
    <Link to={toLink(subject._id)} search={(tab ? { tab } : {}) as never} className={classes.title}>
      {label} {subject.name ?? `an unnamed ${subject.kind}`}
    </Link>
  )
}
