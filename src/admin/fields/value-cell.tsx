import type { Field } from '../api/schema'
import { fieldKinds } from './index'

const MAX_VALUES_SHOWN = 5

/** The value of a field where there is room for one line: a list value by value, nothing for a field without a value. */
export function ValueCell({ field, value }: { field: Field; value: unknown }) {
  if (value === undefined || value === null) return null
  const { Cell } = fieldKinds[field.type]
  if (!Array.isArray(value) || !field.multi) return <Cell field={field} value={value} />
  return (
    <>
      {value.slice(0, MAX_VALUES_SHOWN).map((each, n) => (
        <span key={n}>
          {n > 0 && ', '}
          <Cell field={field} value={each} />
        </span>
      ))}
      {value.length > MAX_VALUES_SHOWN && ' …'}
    </>
  )
}
