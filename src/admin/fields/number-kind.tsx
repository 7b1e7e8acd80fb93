import { NumberInput } from '@mantine/core'
import { IconNumbers } from '@tabler/icons-react'
import { ORDER_OPERATORS } from '../data/operators'
import { ChoiceInput } from './choice-input'
import type { CellProps, FieldKind, InputProps } from './field-kind'
import { valueListInput } from './list-input'

const grouped = new Intl.NumberFormat(undefined, { maximumFractionDigits: 12 })

const NumberCell = ({ value }: CellProps) =>
  typeof value === 'number' ? grouped.format(value) : <span>{groupDigits(String(value))}</span>

/** Groups the digits of a decimal that is a text, because a number would lose some of them. */
function groupDigits(text: string): string {
  const [whole = '', fraction] = text.split('.')
  const sign = whole.startsWith('-') ? '-' : ''
  // Without its sign, because -0 would lose it.
  const groupedWhole = /^-?\d+$/.test(whole) ? `${sign}${BigInt(whole.replace('-', '')).toLocaleString()}` : whole
  return fraction === undefined ? groupedWhole : `${groupedWhole}${decimalPoint}${fraction}`
}
const decimalPoint = grouped.formatToParts(0.5).find(({ type }) => type === 'decimal')?.value ?? '.'

const numberInput = (isInteger: boolean, isText: boolean) =>
  function NumberLine(props: InputProps) {
    if (props.field.enum) return <ChoiceInput {...props} />
    const { field: _, value, onChange, ...rest } = props
    return (
      <NumberInput
        {...rest}
        allowDecimal={!isInteger}
        hideControls
        clampBehavior="none"
        value={typeof value === 'number' || typeof value === 'string' ? value : ''}
        valueIsNumericString={isText}
        onChange={(next) => onChange(next === '' ? undefined : isText ? String(next) : next)}
      />
    )
  }

/** Returns the kind of a type of numbers. `isText`: values are texts, so that no digit is lost. */
export const numberKind = (label: string, isInteger: boolean, isText = false): FieldKind => {
  const Input = numberInput(isInteger, isText)
  return {
    ...{ label, Input },
    icon: IconNumbers,
    operators: ORDER_OPERATORS,
    align: 'right',
    width: 120,
    Cell: NumberCell,
    ListInput: valueListInput(Input),
  }
}
