import { Anchor, Button, Group, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { PluginDelivery } from '../../api/schema'
import { CodeBlock } from '../../ui/code-block'
import { Details } from '../../ui/details'
import { showNotice, showProblem } from '../../ui/notices'
import { RelativeTime } from '../../ui/relative-time'
import { ShortId } from '../../ui/short-id'
import { StateTag } from '../../ui/state-tag'
import { eventQuery } from '../events/event-queries'
import classes from '../lambdas/lambda.module.css'
import { DELIVERY_STATE_WORDS } from './delivery-state'
import { type DeliveryState, replayDelivery } from './plugin-queries'

type DeliveryProps = { plugin: string; delivery: PluginDelivery }

/** One delivery: a line that opens to what was sent and what the plugin answered. */
export function Delivery({ plugin, delivery }: DeliveryProps) {
  const [isOpen, setIsOpen] = useState(false)
  const { state, eventName, status, attempts, updated } = delivery
  return (
    <details className={classes.run} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        <StateTag {...DELIVERY_STATE_WORDS[state as DeliveryState]} />
        <span className={classes.grow}>{eventName}</span>
        <Text size="xs" c="dimmed" component="span">
          {status && `${status} · `}
          {attempts} {attempts === 1 ? 'attempt' : 'attempts'} · <RelativeTime time={updated} />
        </Text>
      </summary>
      {isOpen && <DeliveryDetails plugin={plugin} delivery={delivery} />}
    </details>
  )
}

function DeliveryDetails({ plugin, delivery }: DeliveryProps) {
  const { _id, event, hookUrl, state, error, answer, status, durationMs, nextAttempt, created } = delivery
  const sentEvent = useQuery({ ...eventQuery(event), retry: false })
  const replay = useMutation({
    mutationFn: () => replayDelivery(plugin, _id),
    onSuccess: () => showNotice('The delivery is sent again now.'),
    onError: showProblem,
  })
  return (
    <>
      <Details
        items={[
          ['Address', hookUrl],
          ['Error', error],
          ['Took', durationMs === null ? undefined : `${durationMs} ms`],
          ['Next attempt', nextAttempt && <RelativeTime time={nextAttempt} />],
          ['Created', <RelativeTime key="created" time={created} />],
          [
            'Event',
            <Anchor key="event" component={Link} to={`/automation/events/${event}`} size="sm">
              {event.slice(0, 8)}
            </Anchor>,
          ],
          ['webhook-id', <ShortId key="id" id={_id} />],
        ]}
      />
      <CodeBlock
        label="Request"
        code={
          sentEvent.data
            ? JSON.stringify(sentEvent.data, null, 2)
            : sentEvent.error
              ? 'The event is no longer kept.'
              : ''
        }
      />
      {status !== null && <CodeBlock label={`Answer ${status}`} code={answer || 'empty'} />}
      <Group mb="sm">
        <Button variant="default" onClick={() => replay.mutate()} loading={replay.isPending}>
          {state === 'delivered' ? 'Send again' : 'Send now'}
        </Button>
      </Group>
    </>
  )
}
