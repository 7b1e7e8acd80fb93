import { Text } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { LambdaRun } from '../../api/schema'
import { ProblemMessage } from '../../ui/problem-message'
import { RelativeTime } from '../../ui/relative-time'
import { StateTag } from '../../ui/state-tag'
import classes from './lambda.module.css'
import { newestRunQuery, runsQuery } from './lambda-queries'
import { LogLines } from './log-lines'
import { RunFailure } from './run-failure'

/** The last runs of a lambda. It follows new ones while somebody looks. */
export function LambdaLogs({ id }: { id: string }) {
  const newest = useQuery(newestRunQuery(id))
  const runs = useQuery({
    ...runsQuery(id, newest.data ?? ''),
    enabled: newest.isSuccess,
    placeholderData: keepPreviousData,
  })
  const error = newest.error ?? runs.error
  return (
    <>
      {error && <ProblemMessage error={error} />}
      <Text size="xs" c="dimmed" role="status">
        {runs.data?.length === 0 ? 'It has not run yet. ' : ''}New runs appear here at once.
      </Text>
      {runs.data?.map((run) => (
        <Run key={run._id} run={run} />
      ))}
    </>
  )
}

function Run({ run: { started, trigger, status, duration, error, logs, version } }: { run: LambdaRun }) {
  return (
    <details className={classes.run}>
      <summary>
        <StateTag label={String(status)} tone={error || status >= 400 ? 'bad' : 'good'} />
        <span>{trigger}</span>
        <span className={classes.grow}>{error?.message ?? logs.at(-1)?.text}</span>
        <Text size="xs" c="dimmed" component="span">
          {duration} ms · <RelativeTime time={started} />
        </Text>
      </summary>
      {error && <RunFailure failure={error} />}
      {logs.length > 0 ? (
        <LogLines lines={logs} />
      ) : (
        <Text size="xs" c="dimmed" mb="sm">
          It wrote nothing to its log.
        </Text>
      )}
      <Text size="xs" c="dimmed" mb="sm">
        Version {version}
      </Text>
    </details>
  )
}
