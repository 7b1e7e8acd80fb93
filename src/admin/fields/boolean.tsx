import { Checkbox, Select } from '@mantine/core'
import { IconCheck, IconMinus, IconSquareCheck } from '@tabler/icons-react'
import { FLAG_OPERATORS } from '../data/operators'
import type { FieldKind, InputProps } from './field-kind'
import { valueListInput } from './list-input'

const ANSWERS = [
  { value: 'true', label: 'Yes' },
  { value: 'false', label: 'No' },
]

/** A box where it has a label, else a choice, which also can be empty. */
const FlagInput = ({ field, value, onChange, required, error, ...rest }: InputProps) =>
  rest.label ? (
    <Checkbox
      {...rest}
      error={error}
      checked={value === true}
      indeterminate={(value === undefined || value === null) && !field.required}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  ) : (
    <Select
      {...rest}
      error={error}
      data={ANSWERS}
      value={value === undefined || value === null ? null : String(value)}
      onChange={(chosen) => onChange(chosen === null ? undefined : chosen === 'true')}
      clearable={!field.required}
    />
  )

export const boolean: FieldKind = {
  label: 'Yes or no',
  icon: IconSquareCheck,
  operators: FLAG_OPERATORS,
  width: 90,
  Cell: ({ value }) =>
    value ? <IconCheck size={16} aria-label="yes" /> : <IconMinus size={16} opacity={0.5} aria-label="no" />,
  Input: FlagInput,
  ListInput: valueListInput(FlagInput),
}
