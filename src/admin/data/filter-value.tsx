import { TextInput } from '@mantine/core'
import { isExact } from '../../core/exact-numbers'
import { readList, writeList } from '../../core/list-text'
import type { FormField } from '../fields/field-form'
import { TextListInput, valueListInput } from '../fields/list-input'
import { ValueInput } from '../fields/value-input'
import { hasSeveralValues } from './filters'
import type { Operator } from './operators'

type FilterValueProps = { field: FormField; operator: Operator; value: unknown; onChange: (value: unknown) => void }

/** Returns a value of an address as the input of its field takes it. */
export function readFilterValue(field: FormField, operator: Operator, text: string): unknown {
  if (text === '') return undefined
  if (hasSeveralValues(operator)) return (readList(text) ?? [text]).map((each) => readFilterValue(field, 'eq', each))
  if (field.type === 'boolean') return text === 'true'
  const isNumber = field.type === 'number' || field.type === 'integer'
  return isNumber && isExact(text) ? Number(text) : text
}

/** Returns a value as the address writes it. */
export const writeFilterValue = (value: unknown): string =>
  Array.isArray(value) ? writeList(value.filter((each) => each !== null && each !== '')) : String(value ?? '')

/** The value of a condition: typed by the field, several of them for a list. */
export function FilterValue({ field, operator, value, onChange }: FilterValueProps) {
  const plain = { ...field, required: false, min: undefined, max: undefined }
  const props = { value, onChange, 'aria-label': 'Value' }
  if (operator === '$like')
    return (
      <TextInput
        aria-label="Value"
        placeholder="a part of the text"
        value={String(value ?? '')}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    )
  if (hasSeveralValues(operator)) {
    const Several = field.Input ? valueListInput(field.Input) : undefined
    if (Several) return <Several {...props} field={plain} />
    return plain.type === 'string' ? (
      <TextListInput {...props} field={plain} />
    ) : (
      <ValueInput {...props} field={{ ...plain, multi: true }} />
    )
  }
  const Input = field.Input ?? ValueInput
  return <Input {...props} field={{ ...plain, multi: false }} />
}
