import { Checkbox, Select } from '@mantine/core'
import { IconCheck, IconMinus, IconSquareCheck } from '@tabler/icons-react'
import { FLAG_OPERATORS } from '../data/operators'
import type { FieldKind } from './field-kind'

export const boolean: FieldKind = {
  label: 'Yes or no',
  icon: IconSquareCheck,
  operators: FLAG_OPERATORS,
  width: 90,
  Cell: ({ value }) =>
    value ? <IconCheck size={16} aria-label="yes" /> : <IconMinus size={16} opacity={0.5} aria-label="no" />,
  Input: ({ field, value, onChange, required, error, ...rest }) =>
    required || rest.label ? (
      <Checkbox
        {...rest}
        error={error}
        checked={value === true}
        indeterminate={value === undefined && !field.required}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    ) : (
      <Select
        {...rest}
        data={['true', 'false']}
        value={value === undefined ? null : String(value)}
        onChange={(chosen) => onChange(chosen === null ? undefined : chosen === 'true')}
      />
    ),
}
