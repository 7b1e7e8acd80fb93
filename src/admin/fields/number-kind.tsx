import { NumberInput } from '@mantine/core'
import { IconNumbers } from '@tabler/icons-react'
import { ORDER_OPERATORS } from '../data/operators'
import type { CellProps, FieldKind, InputProps } from './field-kind'

const grouped = new Intl.NumberFormat(undefined, { maximumFractionDigits: 12 })

const NumberCell = ({ value }: CellProps) =>
  typeof value === 'number' ? grouped.format(value) : <span>{groupDigits(String(value))}</span>

/** Groups the digits of a decimal that is a text, because a number would lose some of them. */
function groupDigits(text: string): string {
  const [whole = '', fraction] = text.split('.')
  const groupedWhole = /^-?\d+$/.test(whole) ? BigInt(whole).toLocaleString() : whole
  return fraction === undefined ? groupedWhole : `${groupedWhole}${decimalPoint}${fraction}`
}
const decimalPoint = grouped.formatToParts(0.5).find(({ type }) => type === 'decimal')?.value ?? '.'

/** Returns the kind of a type of numbers. `isText`: values are texts, so that no digit is lost. */
export const numberKind = (label: string, isInteger: boolean, isText = false): FieldKind => ({
  label,
  icon: IconNumbers,
  operators: ORDER_OPERATORS,
  align: 'right',
  width: 120,
  Cell: NumberCell,
  Input: ({ field, value, onChange, ...rest }: InputProps) => (
    <NumberInput
      {...rest}
      allowDecimal={!isInteger}
      hideControls
      min={field.min === undefined ? undefined : Number(field.min)}
      max={field.max === undefined ? undefined : Number(field.max)}
      clampBehavior="none"
      value={typeof value === 'number' || typeof value === 'string' ? value : ''}
      valueIsNumericString={isText}
      onChange={(next) => onChange(next === '' ? undefined : isText ? String(next) : next)}
    />
  ),
})
