import { isDate, isMoment } from '../../core/clock'
import { numberKey, numberOf } from './keys'
import { fieldType } from './type'

/** A moment, in any time zone; compared as a moment. A query may also name a day, which means its start in UTC. */
export const datetime = fieldType<string>({
  typescript: 'string',
  check: (value) =>
    typeof value === 'string' && isMoment(value) ? undefined : 'must be a time such as 2026-01-31T12:00:00Z',
  key: (value) => numberKey(Date.parse(value)),
  moment: numberOf,
  parse: (text) => {
    // A plus sign that was not encoded arrives as a space.
    const value = isDate(text) ? `${text}T00:00:00Z` : text.replace(' ', '+')
    return isMoment(value) ? value : undefined
  },
  bounds: 'value',
})
