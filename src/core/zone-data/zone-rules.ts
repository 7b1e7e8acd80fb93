import { DAY_MS, HOUR_MS } from '../clock'

/** When a zone has which offset from UTC. `starts[i]` begins `offsets[i]`; the first one begins at `-Infinity`. In ms. */
export type ZoneRules = {
  starts: number[]
  offsets: number[]
  /** Whether the last 400 years of `starts` repeat, because the zone changes its clocks each year from then on. */
  repeats: boolean
}

/** Two changes of the clocks a year. Each is the local time (ms, as if it were UTC) that clocks show before the change. */
export type YearlyChanges = { localStart(year: number): number; before: number; after: number }[]

/** After so long, the days of the Gregorian calendar and their weekdays repeat. */
const CYCLE_YEARS = 400
const CYCLE_MS = 146_097 * DAY_MS
const FIRST_YEAR_WITHOUT_HISTORY = 1900

/** Returns rules that go on with yearly changes after the last start. */
export function addYearlyChanges({ starts, offsets }: Omit<ZoneRules, 'repeats'>, changes: YearlyChanges): ZoneRules {
  const last = starts.at(-1)!
  const firstYear = Number.isFinite(last) ? new Date(last).getUTCFullYear() : FIRST_YEAR_WITHOUT_HISTORY
  const added = Array.from({ length: CYCLE_YEARS + 2 }, (_, index) => firstYear + index)
    .flatMap((year) =>
      changes.map(({ localStart, before, after }) => ({ start: localStart(year) - before, offset: after })),
    )
    .filter(({ start }) => start > last)
    .sort((one, other) => one.start - other.start)
  return {
    starts: [...starts, ...added.map(({ start }) => start)],
    offsets: [...offsets, ...added.map(({ offset }) => offset)],
    repeats: true,
  }
}

/** A span of time with one offset: from `start` (included) to `end` (excluded). In ms. */
export type OffsetSpan = { start: number; end: number; offset: number }

/** Returns the span that contains a moment. */
export function findOffsetSpan({ starts, offsets, repeats }: ZoneRules, moment: number): OffsetSpan {
  const last = starts.at(-1)!
  const shift = repeats && moment >= last ? Math.floor((moment - last) / CYCLE_MS + 1) * CYCLE_MS : 0
  const index = findLastAtMost(starts, moment - shift)
  const end = starts[index + 1] ?? Number.POSITIVE_INFINITY
  return { start: starts[index]! + shift, end: end + shift, offset: offsets[index]! }
}

/**
 * Returns a length (ms) that divides an hour, each offset and each start since 1970: what happens within one such span,
 * counted from 1970, happens in one hour of the zone.
 */
export function findGranularity({ starts, offsets }: ZoneRules): number {
  return starts.reduce((length, start, index) => {
    if ((starts[index + 1] ?? 0) < 0) return length
    return greatestDivisor(greatestDivisor(length, Math.abs(offsets[index]!)), Math.max(0, start))
  }, HOUR_MS)
}

const greatestDivisor = (one: number, other: number): number => (other ? greatestDivisor(other, one % other) : one)

function findLastAtMost(starts: number[], moment: number): number {
  let low = 0
  let high = starts.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (starts[middle]! <= moment) low = middle
    else high = middle - 1
  }
  return low
}

/** Returns the moment of the first `weekday` (Sunday is 0) on or after a day, at its start. All in ms of local time. */
export function firstWeekdayFrom(day: number, weekday: number): number {
  return day + ((weekday - new Date(day).getUTCDay() + 7) % 7) * DAY_MS
}
