import { Button, CloseButton, Group, Pill, Popover, Select, Stack, TextInput } from '@mantine/core'
import { IconFilter } from '@tabler/icons-react'
import { type FormEvent, useState } from 'react'
import type { Field } from '../api/schema'
import { fieldKinds } from '../fields'
import type { ListSearch } from './entity-queries'
import { addFilter, describeFilter, type Filter, readFilters, removeFilter } from './filters'
import { OPERATOR_WORDS, type Operator, TIME_OPERATOR_WORDS } from './operators'

type FilterBarProps = { fields: Field[]; search: ListSearch; onChange: (search: ListSearch) => void }

const TIME_TYPES: Field['type'][] = ['date', 'datetime', 'time']
const findField = (fields: Field[], name: string) => fields.find(({ key }) => key === name)
const isTimeField = (field?: Field) => !!field && TIME_TYPES.includes(field.type)

/** The filters of a list as sentences, and a form that adds one. */
export function FilterBar({ fields, search, onChange }: FilterBarProps) {
  return (
    <>
      {search.$q && (
        <FilterPill text={`has the words “${search.$q}”`} onRemove={() => onChange({ ...search, $q: '' })} />
      )}
      {readFilters(search).map((filter) => (
        <FilterPill
          key={`${filter.name} ${filter.operator}`}
          text={describeFilter(filter, isTimeField(findField(fields, filter.name)))}
          onRemove={() => onChange(removeFilter(search, filter))}
        />
      ))}
      <NewFilter fields={fields} onAdd={(filter) => onChange(addFilter(search, filter))} />
    </>
  )
}

const FilterPill = ({ text, onRemove }: { text: string; onRemove: () => void }) => (
  <Pill size="md">
    <Group gap={4} wrap="nowrap">
      {text}
      <CloseButton size="xs" aria-label={`Remove the filter: ${text}`} onClick={onRemove} />
    </Group>
  </Pill>
)

function NewFilter({ fields, onAdd }: { fields: Field[]; onAdd: (filter: Filter) => void }) {
  const [isOpen, setOpen] = useState(false)
  const [name, setName] = useState<string | null>(null)
  const [operator, setOperator] = useState<Operator>('eq')
  const [value, setValue] = useState<unknown>()
  const field = findField(fields, name ?? '')
  const choose = (next: string | null) => {
    const chosen = findField(fields, next ?? '')
    setName(next)
    setOperator(chosen ? fieldKinds[chosen.type].operators[0]! : 'eq')
    setValue(undefined)
  }
  const add = (event: FormEvent) => {
    event.preventDefault()
    if (!name) return
    onAdd({ name, operator, value: String(value ?? (operator === '$exists' ? 'true' : '')) })
    setOpen(false)
    choose(null)
  }
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-start" shadow="md" trapFocus>
      <Popover.Target>
        <Button
          variant="subtle"
          color="gray"
          size="compact-xs"
          leftSection={<IconFilter size={14} />}
          onClick={() => setOpen(true)}
        >
          Filter
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <form onSubmit={add}>
          <Stack gap="xs" w={260}>
            <Select
              label="Field"
              data={fields.map(({ key, title }) => ({ value: key, label: title || key }))}
              value={name}
              onChange={choose}
              searchable
              comboboxProps={{ withinPortal: false }}
              data-autofocus
            />
            {field && <OperatorSelect field={field} value={operator} onChange={setOperator} />}
            {field && operator !== '$exists' && (
              <FilterValue field={field} operator={operator} value={value} onChange={setValue} />
            )}
            <Button type="submit" disabled={!name}>
              Add filter
            </Button>
          </Stack>
        </form>
      </Popover.Dropdown>
    </Popover>
  )
}

type OperatorSelectProps = { field: Field; value: Operator; onChange: (operator: Operator) => void }

const OperatorSelect = ({ field, value, onChange }: OperatorSelectProps) => (
  <Select
    aria-label="Condition"
    data={fieldKinds[field.type].operators.map((each) => ({
      value: each,
      label: (isTimeField(field) && TIME_OPERATOR_WORDS[each]) || OPERATOR_WORDS[each],
    }))}
    value={value}
    onChange={(next) => onChange((next ?? 'eq') as Operator)}
    comboboxProps={{ withinPortal: false }}
    allowDeselect={false}
  />
)

type FilterValueProps = { field: Field; operator: Operator; value: unknown; onChange: (value: unknown) => void }

/** The value of a condition: typed by the field, or texts separated by commas for a list. */
function FilterValue({ field, operator, value, onChange }: FilterValueProps) {
  const { Input } = fieldKinds[field.type]
  if (operator !== '$in' && operator !== '$nin' && operator !== '$like')
    return <Input field={{ ...field, required: false }} value={value} onChange={onChange} aria-label="Value" />
  return (
    <TextInput
      aria-label="Value"
      placeholder={operator === '$like' ? 'a part of the text' : 'values, separated by commas'}
      value={String(value ?? '')}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  )
}
