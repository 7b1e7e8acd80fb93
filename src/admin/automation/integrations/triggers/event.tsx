import { Autocomplete } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { FilterOptions } from '../../../api/schema'
import type { InputProps } from '../../../fields/field-kind'
import { eventOptionsQuery } from '../../events/event-queries'
import type { TriggerKind } from './trigger-kind'

/** Returns an input for a name of events, which suggests those that happened before. */
const createNameInput = (options: keyof FilterOptions) =>
  function NameInput({ field: _, value, onChange, ...rest }: InputProps) {
    const { data } = useQuery(eventOptionsQuery)
    return (
      <Autocomplete
        {...rest}
        data={data?.[options] ?? []}
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
      Input: createNameInput('eventNames'),
    },
    {
      key: 'eventKind',
      title: 'Kind of the event',
      description: 'What it is about, such as the key of a blueprint.',
      type: 'string',
      Input: createNameInput('kinds'),
    },
    {
      key: 'source',
      title: 'Source of the event',
      description: 'The part of the platform, such as accounts.',
      type: 'string',
      Input: createNameInput('sources'),
    },
  ],
  describe({ source, eventKind, eventName }) {
    const name = isNamed(eventName) ? `“${eventName}”` : 'any event'
    const kind = isNamed(eventKind) ? ` of ${eventKind}` : ''
    return `When ${name}${kind}${isNamed(source) ? ` from ${source}` : ''} happens`
  },
  hasCaller: false,
}
