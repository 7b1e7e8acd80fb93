import { CloseButton, Group, Pill, Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { SearchBox } from '../../ui/search-box'
import { useUserName } from '../user-name'
import { DAY_MS, type EventFilters, eventOptionsQuery } from './event-queries'

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
      <SearchBox
        label="Search events"
        value={filters.search}
        onSearch={(words) => onChange({ search: words || undefined })}
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
        <FilterPill text={describePeriod(filters)} onRemove={() => onChange({ from: undefined, to: undefined })} />
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

/** Returns the period of filters in words; a single day is named once. */
function describePeriod({ from, to }: EventFilters): string {
  if (from && to && Date.parse(to) - Date.parse(from) === DAY_MS) return `on ${from}`
  return [from && `from ${from}`, to && `before ${to}`].filter(Boolean).join(', ')
}
