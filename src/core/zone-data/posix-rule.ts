import { DAY_MS, HOUR_MS, MINUTE_MS } from '../clock'
import { firstWeekdayFrom, type YearlyChanges } from './zone-rules'

const NAME = '(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]+>)'
const TIME = '[+-]?\\d{1,3}(?::\\d{2}(?::\\d{2})?)?'
const DAY = '(?:M\\d{1,2}\\.\\d\\.\\d|J?\\d{1,3})'
const RULE = new RegExp(`^${NAME}(${TIME})(?:${NAME}(${TIME})?(?:,(${DAY})(?:/(${TIME}))?,(${DAY})(?:/(${TIME}))?)?)?$`)

/**
 * Reads the rule of a zone at the end of a TZif file, such as `CET-1CEST,M3.5.0,M10.5.0/3`. Returns undefined for a zone
 * that does not change its clocks, and for texts that are no rule.
 */
export function parsePosixRule(text: string): YearlyChanges | undefined {
  const [, standard, daylight, from, fromTime = '2', to, toTime = '2'] = RULE.exec(text) ?? []
  if (!standard || !from || !to) return
  // In POSIX, offsets count from local time to UTC.
  const standardOffset = -parseTime(standard)
  const daylightOffset = daylight ? -parseTime(daylight) : standardOffset + HOUR_MS
  const change = (day: string, time: string, before: number, after: number) => ({
    localStart: (year: number) => findDay(day, year) + parseTime(time),
    ...{ before, after },
  })
  return [change(from, fromTime, standardOffset, daylightOffset), change(to, toTime, daylightOffset, standardOffset)]
}

function parseTime(text: string): number {
  const [hours = 0, minutes = 0, seconds = 0] = text.replace(/^[+-]/, '').split(':').map(Number)
  const ms = hours * HOUR_MS + minutes * MINUTE_MS + seconds * 1_000
  return text.startsWith('-') ? -ms : ms
}

/** Returns the start of a day such as `M3.5.0` (the last Sunday of March), `J60` (never 29 February) or `59`. */
function findDay(day: string, year: number): number {
  if (day.startsWith('M')) {
    const [month = 1, week = 1, weekday = 0] = day.slice(1).split('.').map(Number)
    if (week < 5) return firstWeekdayFrom(Date.UTC(year, month - 1, 1 + (week - 1) * 7), weekday)
    return firstWeekdayFrom(Date.UTC(year, month, -6), weekday)
  }
  const number = Number(day.replace('J', ''))
  const isLeapYear = new Date(Date.UTC(year, 1, 29)).getUTCMonth() === 1
  if (!day.startsWith('J')) return Date.UTC(year, 0, 1) + number * DAY_MS
  return Date.UTC(year, 0, number) + (isLeapYear && number >= 60 ? DAY_MS : 0)
}
