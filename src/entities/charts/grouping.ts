import { iso } from '../../core/clock'
import { invalid } from '../../core/problem'
import { type Part, part, value } from '../conditions'
import { isCutPart, partOf } from '../keys'
import type { Resolved } from '../query'

/** Where a group stands among the others: equal for values of one group, and sorted as groups are. */
export type Place = string | number
export type Name = string | number | boolean

/** How values are put into groups. */
export type Grouping = {
  /** What is asked of each entity (`e`). */
  asked: Part
  /** Whether only equal values are of one group. */
  exact: boolean
  placeOf(key: string): Place
  nameOf(place: Place): Name
  /** Whether an entity of the group tells better what it is called. */
  isCut(place: Place): boolean
  /** Puts in what is missing between the first and the last. */
  filled(places: Place[]): Place[]
}

export const intervals = ['day', 'week', 'month', 'year'] as const
export type Interval = (typeof intervals)[number]
export const isInterval = (text: string | undefined): text is Interval => intervals.some((one) => one === text)

/** Days and moments by the day of the week or by an interval, times of day by the hour, others by their value. */
export function groupingOf({ target, kind }: Resolved, interval?: Interval): Grouping {
  const recorded = target.at === 'column' && kind?.moment
  const asked = value(target)
  const moment = recorded ? (key: string) => Number(key) * DAY : kind?.moment
  const own = {
    // Of when an entity was written, its day is enough, and tells fewer groups from each other.
    asked: recorded ? part(`${asked.sql} / ${DAY}`, ...asked.params) : asked,
    exact: false,
    isCut: () => false,
    filled: (places: Place[]) => places,
  }
  if (moment && interval)
    return {
      ...own,
      placeOf: (key) => startOf[interval](new Date(moment(key))),
      nameOf: (place) => iso(place as number).split('T')[0]!,
      filled: (places) => filled(places as number[], interval),
    }
  const phase = moment ? (key: string) => new Date(moment(key)).getUTCDay() : kind?.hour
  if (phase) return { ...own, placeOf: phase, nameOf: (place) => place }
  const [nameOf, isCut] = kind ? [kind.value, kind.cut] : [partOf, isCutPart]
  return {
    ...own,
    exact: true,
    placeOf: (key) => key,
    nameOf: (place) => (nameOf?.(place as string) ?? place) as Name,
    isCut: (place) => !!isCut?.(place as string),
  }
}

const DAY = 86_400_000
const POINTS = 1_000

/** When the interval began in which a moment lies. Weeks begin on Monday. */
const startOf: Record<Interval, (date: Date) => number> = {
  day: (date) => date.setUTCHours(0, 0, 0, 0),
  week: (date) => startOf.day(date) - ((date.getUTCDay() + 6) % 7) * DAY,
  month: (date) => new Date(startOf.day(date)).setUTCDate(1),
  year: (date) => new Date(startOf.day(date)).setUTCMonth(0, 1),
}
/** At least as long as one lasts, and shorter than two. */
const LENGTHS: Record<Interval, number> = { day: 1, week: 7, month: 32, year: 366 }

function filled(starts: number[], interval: Interval): number[] {
  const [first, last] = [starts[0], starts.at(-1)]
  if (first === undefined || last === undefined) return []
  const all: number[] = []
  for (let start = first; start <= last; start = startOf[interval](new Date(start + LENGTHS[interval] * DAY))) {
    if (all.push(start) > POINTS)
      invalid({
        path: 'interval',
        message: `By ${interval} these would be more than ${POINTS} points. Take a longer interval, or filter by the date.`,
      })
  }
  return all
}
