import { Textarea } from '@mantine/core'
import { IconAlignLeft } from '@tabler/icons-react'
import { TEXT_OPERATORS } from '../data/operators'
import type { FieldKind, InputProps } from './field-kind'
import { valueListInput } from './list-input'
import { TextCell } from './text-cell'

const TextAreaInput = ({ field: _, value, onChange, ...rest }: InputProps) => (
  <Textarea
    {...rest}
    autosize
    minRows={3}
    maxRows={16}
    dir="auto"
    value={typeof value === 'string' ? value : ''}
    onChange={(event) => onChange(event.currentTarget.value || undefined)}
  />
)

export const text: FieldKind = {
  label: 'Long text',
  icon: IconAlignLeft,
  operators: TEXT_OPERATORS,
  width: 260,
  Cell: TextCell,
  Input: TextAreaInput,
  ListInput: valueListInput(TextAreaInput),
}
