import { readTimeOfDay } from './cell-notation'
import { fieldType } from './field-type'

const TIME_PATTERN = /^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$/

/** A time of day: HH:MM or HH:MM:SS. */
export const time = fieldType<string>({
  typescript: 'string',
  jsonSchema: { type: 'string', pattern: TIME_PATTERN.source },
  check: (value) =>
    typeof value === 'string' && TIME_PATTERN.test(value) ? undefined : 'must be a time of day: HH:MM:SS',
  toIndexKey: (value) => (value.length === 5 ? `${value}:00` : value),
  toHour: (key) => Number(key.slice(0, 2)),
  parse: (text) => (TIME_PATTERN.test(text) ? text : undefined),
  bounds: 'value',
  fromCell: readTimeOfDay,
})
