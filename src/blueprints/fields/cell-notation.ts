import { isIsoDate, isIsoDateTime } from '../../core/clock'
import type { TimeZone } from '../../core/time-zone'
import type { DecimalMark } from './number-cell'

/** How a table writes numbers, and the zone of its times that name none. */
export type CellNotation = { decimal: DecimalMark; zone: TimeZone }

const MAX_EXPONENT = 400 // a larger one is no value of any field, and would only make a long text

/** Returns a number that may have an exponent, such as `1e+20`, with all of its digits. */
export function toPlainDecimal(text: string): string | undefined {
  const [, sign = '', whole = '', part = '', exponent] = /^(-?)(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(text) ?? []
  if (exponent === undefined) return `${sign}${whole || '0'}${part && `.${part}`}`
  const shift = Number(exponent)
  if (Math.abs(shift) > MAX_EXPONENT) return
  const digits = whole + part
  const point = whole.length + shift
  const integer = point > 0 ? digits.slice(0, point).padEnd(point, '0') : '0'
  const fraction = (point < 0 ? '0'.repeat(-point) + digits : digits.slice(point)).replace(/0+$/, '')
  return `${sign}${integer.replace(/^0+(?=\d)/, '')}${fraction && `.${fraction}`}`
}

const CELL_TIME =
  /^(\d{4}-\d\d-\d\d)(?:[T ]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(\.\d{1,9})?)?)?(?: ?(Z|UTC|[+-]\d\d(?::?\d\d)?))?$/i

/** Returns the moment of a cell such as `2026-01-31 12:00:00` in ISO 8601, or undefined when it is none. */
export function readMoment(cell: string, notation: Pick<CellNotation, 'zone'>): string | undefined {
  const text = cell.trim()
  if (isIsoDateTime(text)) return text
  const [, day = '', hour = '00', minute = '00', second = '00', fraction = '', zone] = CELL_TIME.exec(text) ?? []
  if (!isIsoDate(day)) return
  const local = `${day}T${hour}:${minute}:${second}`
  if (zone === undefined) {
    const moment = new Date(notation.zone.toMoment(Date.parse(`${local}Z`))).toISOString()
    return moment.replace('.000Z', `${fraction.length > 3 ? fraction : (fraction || '.').padEnd(4, '0')}Z`)
  }
  const [, sign, hours, minutes = '00'] = /^([+-])(\d\d):?(\d\d)?$/.exec(zone) ?? []
  return `${local}${fraction}${sign ? `${sign}${hours}:${minutes}` : 'Z'}`
}

/** Returns the day of a cell: `2026-01-31`, also with a time of midnight, as some programs write days. */
export function readDay(cell: string): string | undefined {
  const [, day = ''] =
    /^(\d{4}-\d\d-\d\d)(?:[T ]00:00(?::00(?:\.0+)?)?(?: ?(?:Z|UTC|\+00(?::?00)?))?)?$/i.exec(cell.trim()) ?? []
  return isIsoDate(day) ? day : undefined
}

/** Returns the time of day of a cell: `08:00:00`, also as `8:00` or `8:00:00 PM`. */
export function readTimeOfDay(cell: string): string | undefined {
  const [, hour, minute, second, half] =
    /^(\d{1,2}):([0-5]\d)(?::([0-5]\d)(?:\.0+)?)?(?: ?([AP])M)?$/i.exec(cell.trim()) ?? []
  if (hour === undefined || (half && (Number(hour) < 1 || Number(hour) > 12))) return
  const hours = half ? (Number(hour) % 12) + (/p/i.test(half) ? 12 : 0) : Number(hour)
  return hours > 23 ? undefined : [String(hours).padStart(2, '0'), minute, second].filter(Boolean).join(':')
}
