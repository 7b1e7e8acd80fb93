import { Textarea } from '@mantine/core'
import { IconAlignLeft } from '@tabler/icons-react'
import { TEXT_OPERATORS } from '../data/operators'
import type { FieldKind } from './field-kind'
import { TextCell } from './text-cell'

export const text: FieldKind = {
  label: 'Long text',
  icon: IconAlignLeft,
  operators: TEXT_OPERATORS,
  width: 260,
  Cell: TextCell,
  Input: ({ field: _, value, onChange, ...rest }) => (
    <Textarea
      {...rest}
      autosize
      minRows={3}
      maxRows={16}
      value={typeof value === 'string' ? value : ''}
      onChange={(event) => onChange(event.currentTarget.value || undefined)}
    />
  ),
}
