import { Button, Select, Stack } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import { fieldKinds } from '../fields'
import type { FormField } from '../fields/field-form'
import { FilterValue, readFilterValue, writeFilterValue } from './filter-value'
import { describeOperator, type Filter, fromPattern, hasSeveralValues } from './filters'
import type { Operator } from './operators'
import { isSystemField } from './system-fields'

/** A field with an index takes all operators of its type; without one, patterns and bounds would read all entities. */
const listOperators = ({ type, indexed }: FormField): readonly Operator[] =>
  fieldKinds[type].operators.filter((operator) => indexed !== false || operator !== '$like')

const IS_EMPTY = 'is empty'

const toConditions = (field: FormField) =>
  listOperators(field).flatMap((operator) => [
    { value: operator as string, label: describeOperator(operator, field) },
    ...(operator === '$exists' ? [{ value: IS_EMPTY, label: IS_EMPTY }] : []),
  ])

const toOptions = (fields: FormField[]) => {
  const toOption = ({ key, title }: FormField) => ({ value: key, label: title || key })
  return [
    { group: 'Fields', items: fields.filter((field) => !isSystemField(field)).map(toOption) },
    { group: 'Every entity', items: fields.filter(isSystemField).map(toOption) },
  ]
}

type FilterFormProps = { fields: FormField[]; filter?: Filter; onSubmit: (filter: Filter) => void }

/** Makes a condition of a list, or changes one: field, operator, and a value that suits them. */
export function FilterForm({ fields, filter, onSubmit }: FilterFormProps) {
  const [name, setName] = useState(filter?.name ?? null)
  const field = fields.find(({ key }) => key === name)
  const [condition, setCondition] = useState<string>(
    filter?.operator === '$exists' && filter.value === 'false' ? IS_EMPTY : (filter?.operator ?? 'eq'),
  )
  const operator = (condition === IS_EMPTY ? '$exists' : condition) as Operator
  const [value, setValue] = useState<unknown>(() => {
    if (!filter || !field || operator === '$exists') return undefined
    return operator === '$like' ? fromPattern(filter.value) : readFilterValue(field, operator, filter.value)
  })
  const chooseField = (next: string | null) => {
    const chosen = fields.find(({ key }) => key === next)
    setName(next)
    setCondition(chosen ? listOperators(chosen)[0]! : 'eq')
    setValue(undefined)
  }
  const chooseCondition = (next: string | null) => {
    // A list of values is another input than a single value.
    if (hasSeveralValues((next ?? 'eq') as Operator) !== hasSeveralValues(operator)) setValue(undefined)
    setCondition(next ?? 'eq')
  }
  const writtenValue = operator === '$exists' ? String(condition !== IS_EMPTY) : writeFilterValue(value)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    event.stopPropagation()
    if (name && writtenValue !== '') onSubmit({ name, operator, value: writtenValue })
  }
  return (
    <form onSubmit={submit}>
      <Stack gap="xs" w={280}>
        <Select
          label="Field"
          data={toOptions(fields)}
          value={name}
          onChange={chooseField}
          searchable
          openOnFocus={!filter}
          maxDropdownHeight={320}
          data-autofocus={!filter || undefined}
        />
        {field && (
          <Select
            aria-label="Condition"
            data={toConditions(field)}
            value={condition}
            onChange={chooseCondition}
            allowDeselect={false}
          />
        )}
        {field && operator !== '$exists' && (
          <FilterValue
            key={`${name} ${hasSeveralValues(operator)}`}
            field={field}
            operator={operator}
            value={value}
            onChange={setValue}
          />
        )}
        <Button type="submit" disabled={!name || writtenValue === ''}>
          {filter ? 'Change filter' : 'Add filter'}
        </Button>
      </Stack>
    </form>
  )
}
