import { Autocomplete } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { InputProps } from '../../../fields/field-kind'
import { knownEventsQuery } from '../../events/event-queries'
import type { TriggerKind } from './trigger-kind'

const MAX_SUGGESTIONS = 50

/** Returns an input for a name of events, which suggests those that can happen. */
const createNameInput = (part: 'eventName' | 'kind' | 'source') =>
  function NameInput({ field: _, value, onChange, ...rest }: InputProps) {
    const { data = [] } = useQuery(knownEventsQuery)
    const names = [...new Set(data.map((event) => event[part]))].sort()
    return (
      <Autocomplete
        {...rest}
        data={names}
        limit={MAX_SUGGESTIONS}
        placeholder="any"
        value={String(value ?? '')}
        onChange={(text) => onChange(text || undefined)}
      />
    )
  }

const isNamed = (name?: string): name is string => !!name && name !== '*'

export const event: TriggerKind<'event'> = {
  label: 'an event happens',
  fields: [
    {
      key: 'eventName',
      title: 'Name of the event',
      description: 'For example user-registered. Default: any.',
      type: 'string',
      Input: createNameInput('eventName'),
    },
    {
      key: 'eventKind',
      title: 'Kind of the event',
      description: 'Subject of the event, such as the key of a blueprint.',
      type: 'string',
      Input: createNameInput('kind'),
    },
    {
      key: 'source',
      title: 'Source of the event',
      description: 'The part of the platform, such as accounts.',
      type: 'string',
      Input: createNameInput('source'),
    },
  ],
  describe({ source, eventKind, eventName }) {
    const name = isNamed(eventName) ? `“${eventName}”` : 'any event'
    const kind = isNamed(eventKind) ? ` of ${eventKind}` : ''
    return `When ${name}${kind}${isNamed(source) ? ` from ${source}` : ''} happens`
  },
  hasCaller: false,
}
