import { Anchor, Button } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import { CodeBlock } from '../ui/code-block'
import { Details } from '../ui/details'
import { showNotice, showProblem } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { ShortId } from '../ui/short-id'
import { SidePanel } from '../ui/side-panel'
import { describeOutcome, replayEvent } from './event-replay'
import { useListNavigation } from './list-navigation'
import classes from './payments.module.css'
import { ProviderEventState } from './provider-event-states'
import { findProvider } from './providers'

/** One event of a provider beside the list, with its body. */
export function ProviderEventPanel() {
  const { close } = useListNavigation('/payments/inbox')
  const { event: id = '' } = useParams({ strict: false }) as { event?: string }
  const { data: event, error } = useQuery({
    queryKey: ['payments', 'inbox', 'one', id],
    queryFn: () => fetchData(api.GET('/api/payments/events/{id}', { params: { path: { id } } })),
  })
  const replaying = useMutation({
    mutationFn: () => replayEvent(id),
    onSuccess: (after) => showNotice(describeOutcome(after)),
    onError: showProblem,
  })
  const provider = findProvider(event?.providerKind)?.label ?? event?.providerKind
  return (
    <SidePanel
      title={event?.type ?? ''}
      onClose={close}
      footer={
        event && (
          <Button loading={replaying.isPending} onClick={() => replaying.mutate()}>
            Replay
          </Button>
        )
      }
    >
      {error && <ProblemMessage error={error} />}
      {event && (
        <>
          <Details
            items={[
              ['State', <ProviderEventState key="state" status={event.status} />],
              ['Why', event.outcome],
              ['Provider', provider],
              [
                'Subscription',
                event.subscriptionId && (
                  <Anchor
                    key="subscription"
                    component={Link}
                    to={`/payments/subscriptions/${event.subscriptionId}` as never}
                    size="sm"
                  >
                    Show the subscription
                  </Anchor>
                ),
              ],
              ['Happened', <RelativeTime key="occurred" time={event.occurredAt} />],
              ['Received', <RelativeTime key="created" time={event.created} />],
              ['Attempts', event.attempts.toLocaleString()],
              ['Next attempt', event.nextAttempt && <RelativeTime key="next" time={event.nextAttempt} />],
              [`ID at ${provider}`, <ShortId key="external" id={event.eventId} />],
            ]}
          />
          <section className={classes.section}>
            <CodeBlock label="Body" code={JSON.stringify(event.body, null, 2)} />
          </section>
        </>
      )}
    </SidePanel>
  )
}
