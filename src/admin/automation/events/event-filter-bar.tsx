import { CloseButton, Group, Pill, Select, TextInput } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconSearch } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useRef } from 'react'
import { useUserName } from '../user-name'
import { type EventFilters, eventOptionsQuery } from './event-queries'

const PERIODS = [
  { value: 'last-day', label: 'Last day' },
  { value: 'last-week', label: 'Last week' },
  { value: 'last-month', label: 'Last month' },
  { value: 'last-year', label: 'Last year' },
]

type EventFilterBarProps = { filters: EventFilters; onChange: (filters: EventFilters) => void }

/** The filters of events. Those that a click on a value added can be removed here. */
export function EventFilterBar({ filters, onChange }: EventFilterBarProps) {
  const { data: options } = useQuery(eventOptionsQuery)
  const searchBox = useRef<HTMLInputElement>(null)
  useHotkeys([['/', () => searchBox.current?.focus()]])
  const select = (key: keyof EventFilters, label: string, choices: { value: string; label: string }[]) => (
    <Select
      size="xs"
      flex="1 1 130px"
      maw={170}
      aria-label={label}
      placeholder={label}
      data={choices}
      value={filters[key] ?? null}
      onChange={(value) => onChange({ [key]: value ?? undefined })}
      searchable={choices.length > 8}
      clearable
    />
  )
  /** A value that the address has stays visible, also when no event has it. */
  const toChoices = (names: string[] = [], chosen?: string) =>
    [...new Set([...names, ...(chosen ? [chosen] : [])])].map((name) => ({ value: name, label: name }))
  return (
    <>
      <TextInput
        ref={searchBox}
        key={filters.search ?? ''}
        size="xs"
        flex="1 1 160px"
        maw={220}
        aria-label="Search events"
        placeholder="Search"
        leftSection={<IconSearch size={14} />}
        defaultValue={filters.search ?? ''}
        onKeyDown={(event) => {
          if (event.key === 'Enter') onChange({ search: event.currentTarget.value || undefined })
        }}
      />
      {select('eventName', 'Name', toChoices(options?.eventNames, filters.eventName))}
      {select('kind', 'Kind', toChoices(options?.kinds, filters.kind))}
      {select('source', 'Source', toChoices(options?.sources, filters.source))}
      {select('period', 'Period', PERIODS)}
      {filters.user && <UserPill id={filters.user} onRemove={() => onChange({ user: undefined })} />}
      {filters.workspace && (
        <FilterPill
          text={`in the workspace ${filters.workspace.slice(0, 8)}`}
          onRemove={() => onChange({ workspace: undefined })}
        />
      )}
      {(filters.from || filters.to) && (
        <FilterPill text={describeTimes(filters)} onRemove={() => onChange({ from: undefined, to: undefined })} />
      )}
    </>
  )
}

const UserPill = ({ id, onRemove }: { id: string; onRemove: () => void }) => (
  <FilterPill text={`by ${useUserName(id)}`} onRemove={onRemove} />
)

const FilterPill = ({ text, onRemove }: { text: string; onRemove: () => void }) => (
  <Pill size="md">
    <Group gap={4} wrap="nowrap">
      {text}
      <CloseButton size="xs" aria-label={`Remove the filter: ${text}`} onClick={onRemove} />
    </Group>
  </Pill>
)

/** Returns the times of filters in words; a day is named once. */
function describeTimes({ from, to }: EventFilters): string {
  if (from && to && Date.parse(to) - Date.parse(from) === 86_400_000) return `on ${from}`
  return [from && `from ${from}`, to && `before ${to}`].filter(Boolean).join(', ')
}
