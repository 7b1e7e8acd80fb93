import { MultiSelect, Select } from '@mantine/core'
import type { InputProps } from '../fields/field-kind'

type Option = { value: string; label: string }

/** Returns an input that chooses one of some values by their labels. */
export const labelledChoice = (options: readonly Option[]) =>
  function LabelledChoice({ field, value, onChange, ...rest }: InputProps) {
    return (
      <Select
        {...rest}
        data={[...options]}
        value={typeof value === 'string' ? value : null}
        onChange={(chosen) => onChange(chosen ?? undefined)}
        clearable={!field.required}
        allowDeselect={!field.required}
        searchable={options.length > 8}
      />
    )
  }

/** Returns an input that chooses any number of values by their labels. */
export const labelledChoices = (options: readonly Option[], placeholder: string) =>
  function LabelledChoices({ field: _, value, onChange, ...rest }: InputProps) {
    const chosen = Array.isArray(value) ? value.map(String) : []
    return (
      <MultiSelect
        {...rest}
        data={[...options]}
        placeholder={chosen.length ? undefined : placeholder}
        value={chosen}
        onChange={(next) => onChange(next)}
        searchable
        clearable
      />
    )
  }
