import { IconLetterCase } from '@tabler/icons-react'
import { TEXT_OPERATORS } from '../data/operators'
import { EnumCell } from './enum-cell'
import type { FieldKind } from './field-kind'
import { TextListInput } from './list-input'
import { lineInput } from './text-input'

export const string: FieldKind = {
  label: 'Line of text',
  icon: IconLetterCase,
  operators: TEXT_OPERATORS,
  width: 200,
  Cell: EnumCell,
  Input: lineInput(),
  ListInput: TextListInput,
}
