import { DAY_MS, toIsoString } from '../../core/clock'
import { badRequest } from '../../core/problem'
import { valueSql } from '../query/sql-conditions'
import type { ResolvedName } from '../query/target'
import { isTruncatedPart, parsePartKey } from '../store/index-keys'
import { fragment, type SqlFragment } from '../store/sql-fragments'

/** The sort position of a group, which all its values share. */
export type GroupPosition = string | number
export type GroupName = string | number | boolean

/** The number of entities, and their sum in units of the field's kind. */
export type Amount = { count: number; units: bigint }
/** A group, with one of its entities (`first`) and the key of this entity's value. */
export type Group = Amount & { position: GroupPosition; first: number; key: string }

/** How values are grouped. */
export type Grouping = {
  /** The SQL that is selected for each entity (`e`). */
  selected: SqlFragment
  /** Whether each distinct value is its own group. */
  exact: boolean
  toPosition(key: string): GroupPosition
  toName(position: GroupPosition): GroupName
  /** Whether the name may differ from the value as it was written, which then has to be read from an entity. */
  losesNotation(position: GroupPosition): boolean
  /** Adds the missing positions between the first and the last. */
  fillGaps(positions: GroupPosition[]): GroupPosition[]
}

export const intervals = ['day', 'week', 'month', 'year'] as const
export type Interval = (typeof intervals)[number]
export const isInterval = (text: string | undefined): text is Interval => intervals.some((one) => one === text)

/** Groups dates and times by the day of the week or by an interval, times of day by the hour, other values by value. */
export function createGrouping({ target, kind }: ResolvedName, interval?: Interval): Grouping {
  const isHeaderTime = target.at === 'column' && kind?.toMillis
  const selected = valueSql(target)
  const moment = isHeaderTime ? (key: string) => Number(key) * DAY_MS : kind?.toMillis
  const base = {
    // For the time of a write, its day is sufficient and gives fewer distinct values.
    selected: isHeaderTime ? fragment(`${selected.sql} / ${DAY_MS}`, ...selected.params) : selected,
    exact: false,
    losesNotation: () => false,
    fillGaps: (positions: GroupPosition[]) => positions,
  }
  if (moment && interval)
    return {
      ...base,
      toPosition: (key) => startOfInterval[interval](new Date(moment(key))),
      toName: (position) => toIsoString(position as number).split('T')[0]!,
      fillGaps: (positions) => fillIntervalGaps(positions as number[], interval),
    }
  const toPhase = moment ? (key: string) => new Date(moment(key)).getUTCDay() : kind?.toHour
  if (toPhase) return { ...base, toPosition: toPhase, toName: (position) => position }
  const [toName, losesNotation] = kind ? [kind.fromIndexKey, kind.losesNotation] : [parsePartKey, isTruncatedPart]
  return {
    ...base,
    exact: true,
    toPosition: (key) => key,
    toName: (position) => (toName?.(position as string) ?? position) as GroupName,
    losesNotation: (position) => !!losesNotation?.(position as string),
  }
}

const MAX_POINTS = 1_000

/** Return the start of the interval that contains a moment, in ms. Weeks begin on Monday. */
const startOfInterval: Record<Interval, (date: Date) => number> = {
  day: (date) => date.setUTCHours(0, 0, 0, 0),
  week: (date) => startOfInterval.day(date) - ((date.getUTCDay() + 6) % 7) * DAY_MS,
  month: (date) => new Date(startOfInterval.day(date)).setUTCDate(1),
  year: (date) => new Date(startOfInterval.day(date)).setUTCMonth(0, 1),
}
/** At least the length of an interval in days, and less than that of two. */
const MAX_INTERVAL_DAYS: Record<Interval, number> = { day: 1, week: 7, month: 32, year: 366 }

function fillIntervalGaps(starts: number[], interval: Interval): number[] {
  const [first, last] = [starts[0], starts.at(-1)]
  if (first === undefined || last === undefined) return []
  const points: number[] = []
  for (
    let start = first;
    start <= last;
    start = startOfInterval[interval](new Date(start + MAX_INTERVAL_DAYS[interval] * DAY_MS))
  ) {
    if (points.push(start) > MAX_POINTS)
      badRequest({
        path: 'interval',
        message: `Grouping by ${interval} would give more than ${MAX_POINTS} points. Use a longer interval, or filter by date.`,
      })
  }
  return points
}
