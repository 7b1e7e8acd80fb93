import { now as readClock } from './clock'

// The three forms of RFC 9110: Sun, 06 Nov 1994 08:49:37 GMT; Sunday, 06-Nov-94 08:49:37 GMT; Sun Nov  6 08:49:37 1994.
const HTTP_DATE = /^[A-Z][a-z]{2,8}, \d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} GMT$/
const ASCTIME_DATE = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/** Returns how long a `Retry-After` asks to wait (ms): it is a number of seconds or a date. Undefined for anything else. */
export function parseRetryAfter(value: string | null | undefined, now = readClock()): number | undefined {
  const text = value?.trim()
  if (!text) return
  if (/^\d{1,15}$/.test(text)) return Number(text) * 1_000
  const date = HTTP_DATE.test(text)
    ? Date.parse(text)
    : ASCTIME_DATE.test(text)
      ? Date.parse(`${text} GMT`)
      : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
