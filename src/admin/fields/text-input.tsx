import { TextInput } from '@mantine/core'
import type { HTMLInputTypeAttribute } from 'react'
import { ChoiceInput } from './choice-input'
import type { InputProps } from './field-kind'

const toText = (value: unknown) => (value === undefined || value === null ? '' : String(value))

/** Returns an input for one line of text; a choice, where the field lists its values. */
export const lineInput = (type: HTMLInputTypeAttribute = 'text') =>
  function LineInput(props: InputProps) {
    if (props.field.enum) return <ChoiceInput {...props} />
    const { field, value, onChange, ...rest } = props
    return (
      <TextInput
        {...rest}
        type={type}
        dir={type === 'text' ? 'auto' : undefined}
        value={toText(value)}
        min={type === 'date' ? field.min : undefined}
        max={type === 'date' ? field.max : undefined}
        onChange={(event) => onChange(event.currentTarget.value || undefined)}
      />
    )
  }
