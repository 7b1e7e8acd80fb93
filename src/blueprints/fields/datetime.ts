import { isIsoDate, isIsoDateTime } from '../../core/clock'
import { readMoment } from './cell-notation'
import { fieldType } from './field-type'
import { numberKey, numberOf } from './index-key-codec'

/** A time with any UTC offset, compared as a moment. In a query a date means its start, in UTC or in the zone of a chart. */
export const datetime = fieldType<string>({
  typescript: 'string',
  jsonSchema: { type: 'string', format: 'date-time' },
  check: (value) =>
    typeof value === 'string' && isIsoDateTime(value) ? undefined : 'must be a time such as 2026-01-31T12:00:00Z',
  toIndexKey: (value) => numberKey(Date.parse(value)),
  toMillis: numberOf,
  isMoment: true,
  parse: (text) => {
    // A plus sign that was not encoded arrives as a space.
    const value = isIsoDate(text) ? `${text}T00:00:00Z` : text.replace(' ', '+')
    return isIsoDateTime(value) ? value : undefined
  },
  bounds: 'value',
  fromCell: readMoment,
})
