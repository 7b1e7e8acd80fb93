import { isDate } from '../../core/clock'
import { fieldType } from './type'

/** A day: YYYY-MM-DD. */
export const date = fieldType<string>({
  typescript: 'string',
  check: (value) => (typeof value === 'string' && isDate(value) ? undefined : 'must be a date: YYYY-MM-DD'),
  key: (value) => value,
  moment: (key) => Date.parse(key),
  parse: (text) => (isDate(text) ? text : undefined),
  bounds: 'value',
})
