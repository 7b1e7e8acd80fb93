import { DAY_MS, HOUR_MS, toIsoString } from '../../core/clock'
import { badRequest } from '../../core/problem'
import { formatQuarter, INTERVALS, type Interval, startOfInterval, type TimeZone, UTC } from '../../core/time-zone'
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

export const isInterval = (text: string | undefined): text is Interval => INTERVALS.some((one) => one === text)

/**
 * Groups dates and times by the day of the week or by an interval, times of day by the hour, other values by value.
 * Moments lie on the days of the zone, dates on the same day in every zone.
 */
export function createGrouping({ target, kind }: ResolvedName, interval?: Interval, zone: TimeZone = UTC): Grouping {
  const isHeaderTime = target.at === 'column' && kind?.toMillis
  const selected = valueSql(target)
  const slice = zone !== UTC ? zone.getGranularity() : interval === 'hour' ? HOUR_MS : DAY_MS
  const moment = isHeaderTime ? (key: string) => Number(key) * slice : kind?.toMillis
  const toLocal = moment && ((key: string) => (kind?.isMoment ? zone.toLocal(moment(key)) : moment(key)))
  const base = {
    // For the time of a write, its day or hour is sufficient and gives fewer distinct values.
    selected: isHeaderTime ? fragment(`${selected.sql} / ${slice}`, ...selected.params) : selected,
    exact: false,
    losesNotation: () => false,
    fillGaps: (positions: GroupPosition[]) => positions,
  }
  if (moment && interval === 'hour')
    return {
      ...base,
      toPosition: (key) => zone.startOf('hour', moment(key)),
      toName: (position) => zone.format(position as number),
      fillGaps: (positions) =>
        fillIntervalGaps(positions as number[], interval, (start) => zone.startOf('hour', start + HOUR_MS)),
    }
  if (toLocal && interval && interval !== 'hour')
    return {
      ...base,
      toPosition: (key) => startOfInterval[interval](toLocal(key)),
      toName: (position) => nameInterval(position as number, interval),
      fillGaps: (positions) =>
        fillIntervalGaps(positions as number[], interval, (start) =>
          startOfInterval[interval](start + MAX_INTERVAL_DAYS[interval] * DAY_MS),
        ),
    }
  const toPhase = toLocal ? (key: string) => new Date(toLocal(key)).getUTCDay() : kind?.toHour
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

const nameInterval = (start: number, interval: Interval) =>
  interval === 'quarter' ? formatQuarter(start) : toIsoString(start).split('T')[0]!

const MAX_POINTS = 1_000

/** At least the length of an interval in days, and less than that of two. */
const MAX_INTERVAL_DAYS: Record<Exclude<Interval, 'hour'>, number> = {
  ...{ day: 1, week: 7, month: 32, quarter: 93, year: 366 },
}

function fillIntervalGaps(starts: number[], interval: Interval, next: (start: number) => number): number[] {
  const [first, last] = [starts[0], starts.at(-1)]
  if (first === undefined || last === undefined) return []
  const points: number[] = []
  for (let start = first; start <= last; start = next(start)) {
    if (points.push(start) > MAX_POINTS)
      badRequest({
        path: 'interval',
        message: `Grouping by ${interval} would give more than ${MAX_POINTS} points. Use a longer interval, or filter by date.`,
      })
  }
  return points
}
