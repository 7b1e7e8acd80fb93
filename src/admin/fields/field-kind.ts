import type { TablerIcon } from '@tabler/icons-react'
import type { ComponentType } from 'react'
import type { Field } from '../api/schema'
import type { Operator } from '../data/operators'

export type FieldType = Field['type']

export type CellProps = { field: Field; value: unknown }

export type InputProps = {
  field: Field
  value: unknown
  /** `undefined` leaves the field without a value. */
  onChange: (value: unknown) => void
  onBlur?: () => void
  error?: string
  /** For an object: in which part of it the error is, as a JSON pointer. */
  errorPath?: string
  /** The name for assistive technology, where no label is visible. */
  'aria-label'?: string
  label?: string
  description?: string
  required?: boolean
  autoFocus?: boolean
}

/** What the page has to know about one type of fields. */
export type FieldKind = {
  label: string
  icon: TablerIcon
  /** The operators that make sense for its values, the most useful first. */
  operators: readonly Operator[]
  /** Numbers are aligned to the right. */
  align?: 'right'
  /** The width of its column, in px. */
  width: number
  Cell: ComponentType<CellProps>
  Input: ComponentType<InputProps>
  /** The input for a field with several values. */
  ListInput: ComponentType<InputProps>
}
