import { Select, TagsInput, TextInput } from '@mantine/core'
import type { HTMLInputTypeAttribute } from 'react'
import type { InputProps } from './field-kind'

const toText = (value: unknown) => (value === undefined || value === null ? '' : String(value))

/** Returns an input for one line of text; a choice, where the field lists its values. */
export const lineInput = (type: HTMLInputTypeAttribute = 'text') =>
  function LineInput({ field, value, onChange, ...rest }: InputProps) {
    const { min, max, enum: choices } = field
    if (choices)
      return (
        <Select
          {...rest}
          data={choices.map(String)}
          value={toText(value) || null}
          onChange={(chosen) => onChange(chosen ?? undefined)}
          clearable={!field.required}
          searchable={choices.length > 8}
        />
      )
    return (
      <TextInput
        {...rest}
        type={type}
        value={toText(value)}
        maxLength={type === 'text' && typeof max === 'number' ? max : undefined}
        min={type === 'date' ? min : undefined}
        max={type === 'date' ? max : undefined}
        onChange={(event) => onChange(event.currentTarget.value || undefined)}
      />
    )
  }

/** An input for a list of texts. */
export function TextListInput({ field, value, onChange, ...rest }: InputProps) {
  return (
    <TagsInput
      {...rest}
      data={field.enum?.map(String)}
      value={Array.isArray(value) ? value.map(String) : []}
      onChange={(list) => onChange(list.length ? list : undefined)}
    />
  )
}
