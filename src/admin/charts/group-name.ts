import type { Field } from '../api/schema'
import type { ChartInterval, NewChart } from './saved-chart'

const dayFormat = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' })
const monthFormat = new Intl.DateTimeFormat(undefined, { month: 'short', year: 'numeric', timeZone: 'UTC' })
const weekdayFormat = new Intl.DateTimeFormat(undefined, { weekday: 'long', timeZone: 'UTC' })
const DAY_MS = 86_400_000
/** 4 January 1970 was a Sunday, which is the day 0 of a week. */
const FIRST_SUNDAY_MS = 3 * DAY_MS

const hourFormat = new Intl.DateTimeFormat(undefined, {
  ...({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', timeZone: 'UTC' } as const),
})

const intervalNames: Record<Exclude<ChartInterval, 'quarter'>, (start: Date) => string> = {
  hour: (start) => hourFormat.format(start),
  day: (start) => dayFormat.format(start),
  week: (start) => dayFormat.format(start),
  month: (start) => monthFormat.format(start),
  year: (start) => String(start.getUTCFullYear()),
}

/** Returns what a group is called: the server names days of the week and hours by numbers, and intervals by their first day. */
export function nameGroup(name: string | number | boolean, { groupBy, interval }: NewChart, field?: Field): string {
  if (typeof name === 'boolean') return name ? 'Yes' : 'No'
  const type = field?.type ?? (groupBy === 'created' || groupBy === 'updated' ? 'datetime' : 'string')
  // The server names a quarter as people do, and an hour by the clocks of the zone.
  if (interval === 'quarter' && typeof name === 'string') return name.replace('-', ' ')
  if (interval && interval !== 'quarter' && typeof name === 'string') {
    const local = interval === 'hour' ? name.slice(0, 'YYYY-MM-DDTHH:MM'.length) : `${name}T00:00`
    return intervalNames[interval](new Date(`${local}Z`))
  }
  if (typeof name !== 'number') return name === '' ? 'Empty' : name
  if (type === 'date' || type === 'datetime') return weekdayFormat.format(FIRST_SUNDAY_MS + name * DAY_MS)
  if (type === 'time') return `${String(name).padStart(2, '0')}:00`
  return name.toLocaleString()
}
