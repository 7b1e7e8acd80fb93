import { Button, Group, Select, Text } from '@mantine/core'
import { IconRepeat } from '@tabler/icons-react'
import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { showNotice, showProblem } from '../../ui/notices'
import { ProblemMessage } from '../../ui/problem-message'
import { Delivery } from './delivery'
import { DELIVERY_STATE_WORDS } from './delivery-state'
import { DELIVERY_STATES, type DeliveryState, deliveriesQuery, replayDeadDeliveries } from './plugin-queries'

const STATE_CHOICES = DELIVERY_STATES.map((value) => ({ value, label: DELIVERY_STATE_WORDS[value].label }))

/** The last deliveries to a plugin. It follows them while somebody looks. */
export function PluginDeliveries({ id }: { id: string }) {
  const search = useSearch({ strict: false }) as { state?: DeliveryState }
  const navigate = useNavigate()
  const { data: deliveries, error } = useQuery({
    ...deliveriesQuery(id, search.state),
    placeholderData: keepPreviousData,
  })
  const { data: dead = [] } = useQuery(deliveriesQuery(id, 'dead'))
  const [progress, setProgress] = useState('')
  const replayAll = useMutation({
    mutationFn: () => replayDeadDeliveries(id, (done, total) => setProgress(`${done} of ${total}`)),
    onSuccess: (count) => showNotice(`${count} ${count === 1 ? 'delivery is' : 'deliveries are'} sent again.`),
    onError: showProblem,
    onSettled: () => setProgress(''),
  })
  return (
    <>
      <Group gap="xs" mb="xs">
        <Select
          size="xs"
          w={150}
          aria-label="State"
          placeholder="All states"
          clearable
          data={STATE_CHOICES}
          value={search.state ?? null}
          onChange={(state) =>
            navigate({ to: '.', search: { ...search, state: state ?? undefined } as never, replace: true })
          }
        />
        {dead.length > 0 && (
          <Button
            variant="default"
            leftSection={<IconRepeat size={14} />}
            onClick={() => replayAll.mutate()}
            disabled={replayAll.isPending}
          >
            {progress || 'Resend all that were given up'}
          </Button>
        )}
      </Group>
      {error && <ProblemMessage error={error} />}
      <Text size="xs" c="dimmed" role="status">
        {deliveries?.length === 0 ? 'There are no deliveries here. ' : ''}New ones appear at once.
      </Text>
      {deliveries?.map((delivery) => (
        <Delivery key={delivery._id} plugin={id} delivery={delivery} />
      ))}
    </>
  )
}
