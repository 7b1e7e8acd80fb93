import { BoundedMap } from './bounded-map'
import { cacheTexts } from './cached-texts'

let offsetMs = 0
let [leastLead, greatestLead] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]

/**
 * Returns the milliseconds since 1970 (UTC). Every rule about time reads this clock only, so that a test can move it.
 */
export function now(): number {
  const time = Date.now() + offsetMs
  // Timers follow `performance.now()`, which nobody sets.
  const lead = time - performance.now()
  if (lead < leastLead) leastLead = lead
  if (lead > greatestLead) greatestLead = lead
  return time
}

/** Returns by how many ms the clock was set since the last call, judged by every reading of it, however short it lasted. */
export function takeClockChange(): number {
  now()
  const change = greatestLead - leastLead
  leastLead = Number.POSITIVE_INFINITY
  greatestLead = Number.NEGATIVE_INFINITY
  now()
  return change
}

/** Sets the clock to the given moment (ms since 1970), from which it goes on; without one, to the system's time. */
export function moveClock(to?: number) {
  offsetMs = to === undefined ? 0 : to - Date.now()
}

/** An hour in ms. */
export const HOUR_MS = 3_600_000
/** A day in ms. */
export const DAY_MS = 86_400_000
export const MINUTE_MS = 60_000
const padded = (n: number, length = 2) => `${n}`.padStart(length, '0')
const toMinute = cacheTexts((n) => `${padded(Math.floor(n / 60))}:${padded(n % 60)}:`)
const toSecond = cacheTexts((n) => `${padded(n)}.`)
const toMillisecond = cacheTexts((n) => `${padded(n, 3)}Z`)

const MAX_CACHED_DAYS = 4_000
const textsByDay = new BoundedMap<number, string>(MAX_CACHED_DAYS)

/**
 * Returns a moment (ms since 1970) as ISO 8601 in UTC with milliseconds. What is shown has times of few days, so they are
 * put together from parts that are at hand.
 */
export function toIsoString(ms: number): string {
  const day = Math.floor(ms / DAY_MS)
  const msOfDay = ms - day * DAY_MS
  const msOfMinute = msOfDay % MINUTE_MS
  const minute = toMinute((msOfDay / MINUTE_MS) | 0)
  return (
    (textsByDay.get(day) ?? addDay(day)) +
    minute +
    toSecond((msOfMinute / 1_000) | 0) +
    toMillisecond(msOfMinute % 1_000)
  )
}

function addDay(day: number): string {
  const text = new Date(day * DAY_MS).toISOString().slice(0, -13)
  textsByDay.set(day, text)
  return text
}

const ISO_DATE_TIME =
  /^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/

/** Tells whether a text is an existing moment in ISO 8601 with a time zone. Leap seconds do not exist here. */
export const isIsoDateTime = (text: string) => ISO_DATE_TIME.test(text) && isExistingDay(text)

/**
 * Returns the moment (ms since 1970) of a text in ISO 8601, or undefined for other texts. A day is its start in UTC, and
 * a time without a zone is in UTC, whatever the time zone of the machine.
 */
export function parseIsoDateTime(text: string): number | undefined {
  if (isIsoDate(text)) return Date.parse(text)
  return [text, `${text}Z`].filter(isIsoDateTime).map(Date.parse)[0]
}

const DAYS_OF_MONTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** Tells whether a text is an existing day as YYYY-MM-DD. `Date` would turn 31 April into 1 May. */
export const isIsoDate = (text: string) => /^\d{4}-\d{2}-\d{2}$/.test(text) && isExistingDay(text)

/** Tells whether the day exists that a text begins with, as YYYY-MM-DD. */
function isExistingDay(text: string): boolean {
  const digit = (at: number) => text.charCodeAt(at) - 48
  const year = 1_000 * digit(0) + 100 * digit(1) + 10 * digit(2) + digit(3)
  const [month, day] = [10 * digit(5) + digit(6), 10 * digit(8) + digit(9)]
  const isLeapYear = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  return day > 0 && day <= (month === 2 && isLeapYear ? 29 : (DAYS_OF_MONTHS[month - 1] ?? 0))
}
