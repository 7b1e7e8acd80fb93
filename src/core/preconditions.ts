import { includesEtag, isNotModified } from './etag'
import { Problem } from './problem'

/** What distinguishes the state of a file from its other states; `modified` is in seconds. */
export type Validators = { etag: string; modified: number }
type ReadRequest = Pick<Request, 'method' | 'headers'>

/**
 * Evaluates the conditions of a GET or HEAD in the order of RFC 9110, 13.2.2, and tells whether the client has this state
 * already.
 * @throws 412 VERSION_MISMATCH when `If-Match` or `If-Unmodified-Since` names another state
 */
export function hasCurrent({ headers }: Pick<Request, 'headers'>, { etag, modified }: Validators): boolean {
  const ifMatch = headers.get('if-match')
  const unmodifiedSince = ifMatch === null ? parseHttpDate(headers.get('if-unmodified-since')) : undefined
  if (ifMatch !== null ? !includesEtag(ifMatch, etag) : unmodifiedSince !== undefined && modified > unmodifiedSince)
    throw new Problem(412, 'VERSION_MISMATCH', 'The file has changed since you read it. Read it again, then retry.')
  if (headers.has('if-none-match')) return isNotModified({ headers }, etag)
  const modifiedSince = parseHttpDate(headers.get('if-modified-since'))
  return modifiedSince !== undefined && modified <= modifiedSince
}

/**
 * Returns the range that a GET asks for: the first byte and the one after the last; undefined for the whole file, also
 * when several ranges are requested, or `If-Range` names another state.
 */
export function parseRange(
  { method, headers }: ReadRequest,
  size: number,
  validators: Validators,
): [number, number] | 'unsatisfiable' | undefined {
  const range = method === 'GET' ? headers.get('range') : null
  if (range === null || !isIfRangeMet(headers.get('if-range'), validators)) return
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(range.trim()) ?? []
  if (!first && !last) return
  if (!first) return Number(last) ? [Math.max(0, size - Number(last)), size] : 'unsatisfiable'
  if (last && Number(last) < Number(first)) return
  return Number(first) < size ? [Number(first), Math.min(size, last ? Number(last) + 1 : size)] : 'unsatisfiable'
}

/** A part of another state, or of a compressed one, would not fit: both are compared exactly. */
const isIfRangeMet = (ifRange: string | null, { etag, modified }: Validators) =>
  ifRange === null || ifRange === etag || parseHttpDate(ifRange) === modified

const MONTHS = 'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec'
const TIME = '\\d{2}:\\d{2}:\\d{2}'
/** The three forms of RFC 9110, 5.6.7. The last one names no zone. */
const ZONED_DATE = new RegExp(`^[A-Z][a-z]{2,8}, \\d{2}(?: (?:${MONTHS}) \\d{4}|-(?:${MONTHS})-\\d{2}) ${TIME} GMT$`)
const ASCTIME_DATE = new RegExp(`^[A-Z][a-z]{2} (?:${MONTHS}) [ \\d]\\d ${TIME} \\d{4}$`)

/** Returns the seconds of a date in a header, or undefined when it is none. */
export function parseHttpDate(text: string | null): number | undefined {
  if (text === null) return
  const zoned = ZONED_DATE.test(text) ? text : ASCTIME_DATE.test(text) ? `${text} GMT` : undefined
  const ms = zoned === undefined ? Number.NaN : Date.parse(zoned)
  return Number.isNaN(ms) ? undefined : ms / 1000
}

/** Returns a time in seconds as the date of a header. */
export const toHttpDate = (seconds: number) => new Date(seconds * 1000).toUTCString()
