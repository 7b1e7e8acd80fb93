import { ActionIcon, Autocomplete, Button, Checkbox, Group, Input, Stack, TextInput } from '@mantine/core'
import { IconPlus, IconTrash } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import type { Plugin } from '../../api/schema'
import type { InputProps } from '../../fields/field-kind'
import { eventOptionsQuery } from '../events/event-queries'
import classes from './plugin.module.css'

type Subscription = Plugin['subscribedEvents'][number]

const NEW_SUBSCRIPTION: Subscription = { source: '*', kind: '*', eventName: '*', hookUrl: '', active: true }

/** An input for the events that a plugin receives, and the addresses to which they are sent. */
export function SubscriptionsInput({ value, onChange, label, error }: InputProps) {
  const { data: options } = useQuery(eventOptionsQuery)
  const subscriptions = Array.isArray(value) ? (value as Subscription[]) : []
  const change = (index: number, part: Partial<Subscription>) =>
    onChange(subscriptions.map((each, n) => (n === index ? { ...each, ...part } : each)))
  const nameInput = (n: number, key: 'source' | 'kind' | 'eventName', title: string, choices: string[] = []) => (
    <Autocomplete
      label={title}
      size="xs"
      placeholder="any"
      data={choices}
      value={subscriptions[n]![key] === '*' ? '' : subscriptions[n]![key]}
      onChange={(text) => change(n, { [key]: text || '*' })}
    />
  )
  return (
    <Input.Wrapper label={label} error={error} labelElement="div">
      <Stack gap="xs" mt={4}>
        {subscriptions.map(({ hookUrl, active }, n) => (
          <fieldset key={n} className={classes.subscription}>
            <legend className={classes.legend}>Subscription {n + 1}</legend>
            <Group grow gap="xs" align="start">
              {nameInput(n, 'eventName', 'Name', options?.eventNames)}
              {nameInput(n, 'kind', 'Kind', options?.kinds)}
              {nameInput(n, 'source', 'Source', options?.sources)}
            </Group>
            <TextInput
              mt="xs"
              size="xs"
              type="url"
              label="Address"
              description="It receives these events by POST."
              required
              value={hookUrl}
              onChange={(event) => change(n, { hookUrl: event.currentTarget.value })}
            />
            <Group mt="xs" justify="space-between">
              <Checkbox
                size="xs"
                label="On"
                checked={active}
                onChange={(event) => change(n, { active: event.currentTarget.checked })}
              />
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={`Remove subscription ${n + 1}`}
                onClick={() => onChange(subscriptions.filter((_, index) => index !== n))}
              >
                <IconTrash size={16} />
              </ActionIcon>
            </Group>
          </fieldset>
        ))}
        <div>
          <Button
            variant="subtle"
            leftSection={<IconPlus size={14} />}
            onClick={() => onChange([...subscriptions, NEW_SUBSCRIPTION])}
          >
            Add subscription
          </Button>
        </div>
      </Stack>
    </Input.Wrapper>
  )
}
