import { Anchor, Button, Group, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api, fetchData } from '../../api/client'
import { queryClient } from '../../api/queries'
import type { Integration, IntegrationRun } from '../../api/schema'
import { CodeBlock } from '../../ui/code-block'
import { Details } from '../../ui/details'
import { showNotice, showProblem } from '../../ui/notices'
import { ProblemMessage } from '../../ui/problem-message'
import { RelativeTime } from '../../ui/relative-time'
import { ShortId } from '../../ui/short-id'
import { StateTag } from '../../ui/state-tag'
import classes from '../lambdas/lambda.module.css'
import { pendingRunsQuery } from './integration-queries'

/** The runs of an integration that wait, are tried again, or were given up. */
export function IntegrationRuns({ integration: { _id, target } }: { integration: Integration }) {
  const { data: runs, error } = useQuery(pendingRunsQuery(_id))
  if (error) return <ProblemMessage error={error} />
  return (
    <>
      <Text size="xs" c="dimmed" role="status">
        {runs?.length === 0 ? 'No run waits, and none was given up. ' : 'Runs that wait or were given up. '}
        {target.kind === 'lambda' && (
          <Anchor
            component={Link}
            to={`/automation/lambdas/${target.lambdaId}`}
            search={{ tab: 'logs' } as never}
            underline="always"
            size="xs"
          >
            The log of the lambda has all runs.
          </Anchor>
        )}
      </Text>
      {runs?.map((run) => (
        <Run key={run._id} integration={_id} run={run} />
      ))}
    </>
  )
}

function Run({ integration, run }: { integration: string; run: IntegrationRun }) {
  const replay = useMutation({
    mutationFn: () => {
      const path = { id: integration, runId: run._id }
      return fetchData(api.POST('/api/integrations/{id}/runs/{runId}/replay', { params: { path } }))
    },
    onSuccess: () => showNotice('The run is tried again now.'),
    onError: showProblem,
    onSettled: () => queryClient.invalidateQueries({ queryKey: pendingRunsQuery(integration).queryKey }),
  })
  const { state, attempts, trigger, event, due, outcome, nextAttempt, created, finished } = run
  const isFailing = state === 'waiting' && attempts > 0
  return (
    <details className={classes.run}>
      <summary>
        <StateTag
          label={state === 'dead' ? 'Given up' : isFailing ? 'Failing' : 'Waiting'}
          tone={state === 'dead' ? 'bad' : isFailing ? 'warning' : 'neutral'}
        />
        <span className={classes.grow}>{trigger}</span>
        <Text size="xs" c="dimmed" component="span">
          {attempts} {attempts === 1 ? 'attempt' : 'attempts'} · <RelativeTime time={created} />
        </Text>
      </summary>
      <Details
        items={[
          [
            'Event',
            event && (
              <Anchor component={Link} to={`/automation/events/${event}`} size="sm">
                {event.slice(0, 8)}
              </Anchor>
            ),
          ],
          ['Due', due && <RelativeTime time={due} />],
          ['Next attempt', nextAttempt && <RelativeTime time={nextAttempt} />],
          ['Given up', finished && <RelativeTime time={finished} />],
          ['ID', <ShortId key="id" id={run._id} />],
        ]}
      />
      {outcome !== null && <CodeBlock label="Last attempt" code={JSON.stringify(outcome, null, 2)} />}
      <Group mb="sm">
        <Button variant="default" onClick={() => replay.mutate()} loading={replay.isPending}>
          Try again
        </Button>
      </Group>
    </details>
  )
}
