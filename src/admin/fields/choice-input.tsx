import { Select } from '@mantine/core'
import type { InputProps } from './field-kind'

/** Longer lists of values can be searched. */
export const MAX_UNSEARCHED_CHOICES = 8

/** An input for one of the values that a field lists. */
export function ChoiceInput({ field, value, onChange, ...rest }: InputProps) {
  const choices = field.enum ?? []
  return (
    <Select
      {...rest}
      data={choices.map(String)}
      value={value === undefined || value === null ? null : String(value)}
      onChange={(chosen) => onChange(choices.find((choice) => String(choice) === chosen))}
      clearable={!field.required}
      searchable={choices.length > MAX_UNSEARCHED_CHOICES}
    />
  )
}
