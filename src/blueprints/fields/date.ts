import { isIsoDate } from '../../core/clock'
import { readDay } from './cell-notation'
import { fieldType } from './field-type'

/** A day: YYYY-MM-DD. */
export const date = fieldType<string>({
  typescript: 'string',
  jsonSchema: { type: 'string', format: 'date' },
  check: (value) => (typeof value === 'string' && isIsoDate(value) ? undefined : 'must be a date: YYYY-MM-DD'),
  toIndexKey: (value) => value,
  toMillis: (key) => Date.parse(key),
  parse: (text) => (isIsoDate(text) ? text : undefined),
  bounds: 'value',
  fromCell: readDay,
})
