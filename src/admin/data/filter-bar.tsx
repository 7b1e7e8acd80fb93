import { Button, CloseButton, Pill, Popover, Text, UnstyledButton } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { IconCode, IconFilter } from '@tabler/icons-react'
import { useMemo, useState } from 'react'
import { ApiProblem } from '../api/problem'
import type { Field } from '../api/schema'
import type { FormField } from '../fields/field-form'
import { InlineDropdowns } from '../ui/inline-dropdowns'
import type { ListSearch } from './entity-queries'
import classes from './filter-bar.module.css'
import { findFilterField, listFilterFields } from './filter-fields'
import { FilterForm } from './filter-form'
import { useFilterSentence } from './filter-sentence'
import { addFilter, type Filter, readFilters, removeFilter, replaceFilter, toFilterKey } from './filters'
import { RawQuery } from './raw-query'

type FilterBarProps = {
  fields: Field[]
  search: ListSearch
  onChange: (search: ListSearch) => void
  /** What the server says about the filters. */
  error?: unknown
}

/** The filters of a list as sentences, a form for them, and the query itself for those who prefer to write it. */
export function FilterBar({ fields, search, onChange, error }: FilterBarProps) {
  const [isRaw, setIsRaw] = useState(false)
  const filterFields = useMemo(() => listFilterFields(fields), [fields])
  const flaws = error instanceof ApiProblem && error.status === 400 ? error.fieldErrors : []
  const filters = readFilters(search)
  const shownFlaws = flaws.map(({ message }) => message)
  return (
    <>
      {search.$q && (
        <Pill size="md" classNames={{ root: classes.pill, label: classes.label }}>
          <span className={classes.words}>has the words “{search.$q}”</span>
          <CloseButton size="xs" aria-label="Remove the search" onClick={() => onChange({ ...search, $q: '' })} />
        </Pill>
      )}
      {filters.map((filter) => (
        <FilterPill
          key={toFilterKey(filter)}
          filter={filter}
          field={findFilterField(filterFields, filter.name)}
          fields={filterFields}
          isWrong={flaws.some(({ path }) => path === toFilterKey(filter) || path === filter.name)}
          onChange={(next) => onChange(replaceFilter(search, filter, next))}
          onRemove={() => onChange(removeFilter(search, filter))}
        />
      ))}
      <NewFilter fields={filterFields} onAdd={(filter) => onChange(addFilter(search, filter))} />
      <Button
        variant={isRaw ? 'light' : 'subtle'}
        color="gray"
        size="compact-xs"
        leftSection={<IconCode size={14} />}
        aria-expanded={isRaw}
        onClick={() => setIsRaw(!isRaw)}
      >
        Query
      </Button>
      {isRaw && <RawQuery search={search} onChange={onChange} />}
      {shownFlaws.length > 0 && (
        <Text size="xs" c="var(--mantine-color-error)" role="alert" w="100%">
          {shownFlaws.join(' ')}
        </Text>
      )}
    </>
  )
}

type FilterPillProps = {
  filter: Filter
  field?: FormField
  fields: FormField[]
  isWrong: boolean
  onChange: (filter: Filter) => void
  onRemove: () => void
}

/** A condition as a sentence. A click changes it. */
function FilterPill({ filter, field, fields, isWrong, onChange, onRemove }: FilterPillProps) {
  const [isOpen, setIsOpen] = useState(false)
  const sentence = useFilterSentence(filter, field)
  const change = (next: Filter) => {
    setIsOpen(false)
    onChange(next)
  }
  const offered = field && !fields.includes(field) ? [...fields, field] : fields
  return (
    <Popover opened={isOpen} onChange={setIsOpen} position="bottom-start" shadow="md" trapFocus>
      <Pill size="md" classNames={{ root: `${classes.pill} ${isWrong ? classes.wrong : ''}`, label: classes.label }}>
        <Popover.Target>
          <UnstyledButton
            className={classes.words}
            onClick={() => setIsOpen(!isOpen)}
            title={sentence}
            disabled={!field}
            aria-invalid={isWrong || undefined}
          >
            <bdi>{sentence}</bdi>
          </UnstyledButton>
        </Popover.Target>
        <CloseButton size="xs" aria-label={`Remove the filter: ${sentence}`} onClick={onRemove} />
      </Pill>
      <Popover.Dropdown>
        <InlineDropdowns>{isOpen && <FilterForm fields={offered} filter={filter} onSubmit={change} />}</InlineDropdowns>
      </Popover.Dropdown>
    </Popover>
  )
}

function NewFilter({ fields, onAdd }: { fields: FormField[]; onAdd: (filter: Filter) => void }) {
  const [isOpen, setIsOpen] = useState(false)
  useHotkeys([['f', () => setIsOpen(true)]])
  const add = (filter: Filter) => {
    setIsOpen(false)
    onAdd(filter)
  }
  return (
    <Popover opened={isOpen} onChange={setIsOpen} position="bottom-start" shadow="md" trapFocus>
      <Popover.Target>
        <Button
          variant="subtle"
          color="gray"
          size="compact-xs"
          leftSection={<IconFilter size={14} />}
          onClick={() => setIsOpen(!isOpen)}
        >
          Filter
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <InlineDropdowns>{isOpen && <FilterForm fields={fields} onSubmit={add} />}</InlineDropdowns>
      </Popover.Dropdown>
    </Popover>
  )
}
