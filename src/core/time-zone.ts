import { BoundedMap } from './bounded-map'
import { DAY_MS, HOUR_MS, MINUTE_MS, toIsoString } from './clock'
import { findNearestKey } from './nearest-key'
import { badRequest } from './problem'
import { getZoneData } from './zone-data/current-zones'
import { findGranularity, findOffsetSpan, type OffsetSpan, type ZoneRules } from './zone-data/zone-rules'

export const INTERVALS = ['hour', 'day', 'week', 'month', 'quarter', 'year'] as const
export type Interval = (typeof INTERVALS)[number]

/**
 * A time zone. A moment is in ms since 1970 in UTC. A *local time* is what the clocks of the zone show, as the number of
 * ms that would be that time in UTC: so `new Date(local)` and its `getUTC…` functions read its parts.
 */
export class TimeZone {
  constructor(
    /** The IANA name, such as Europe/Lisbon. */
    readonly name: string,
    private readonly rules: ZoneRules,
  ) {}

  private span: OffsetSpan | undefined

  /** Returns the span of time with one offset that contains a moment. */
  spanAt(moment: number): OffsetSpan {
    const { span } = this
    if (span && span.start <= moment && moment < span.end) return span
    this.span = findOffsetSpan(this.rules, moment)
    return this.span
  }

  /** Returns how far the clocks of the zone are ahead of UTC, in ms. */
  offsetAt(moment: number): number {
    return this.spanAt(moment).offset
  }

  private granularity: number | undefined

  /** Returns a length (ms): what happens within one such span, counted from 1970, happens in one hour of the zone. */
  getGranularity(): number {
    this.granularity ??= findGranularity(this.rules)
    return this.granularity
  }

  toLocal(moment: number): number {
    return moment + this.offsetAt(moment)
  }

  /** Returns the moments at which the clocks show a local time: two where they are set back, none where they skip it. */
  momentsOf(local: number): number[] {
    return this.spansAround(local).flatMap(({ start, end, offset }) => {
      const moment = local - offset
      return start <= moment && moment < end ? moment : []
    })
  }

  /** Returns the first moment of a local time. One that the clocks skip lies as far behind the gap as it was in it. */
  toMoment(local: number): number {
    const [first] = this.momentsOf(local)
    if (first !== undefined) return first
    const before = this.spansAround(local).findLast(({ end, offset }) => local - offset >= end)
    return local - (before?.offset ?? 0)
  }

  /** Returns the first moment of the interval that contains a moment, by the clocks of the zone. */
  startOf(interval: Interval, moment: number): number {
    // Of an hour that occurs twice, each is an hour of its own.
    if (interval === 'hour') return startOfInterval.hour(this.toLocal(moment)) - this.offsetAt(moment)
    return this.toMoment(startOfInterval[interval](this.toLocal(moment)))
  }

  /** Returns a moment as the clocks show it, with their offset, such as 2027-10-31T02:30:00+02:00. */
  format(moment: number): string {
    const offset = this.offsetAt(moment)
    const fraction = moment % 1_000 ? 23 : 19
    return `${new Date(moment + offset).toISOString().slice(0, fraction)}${formatOffset(offset)}`
  }

  /** Returns the day of a moment, such as 2027-10-31. */
  formatDay(moment: number): string {
    return toIsoString(this.toLocal(moment)).slice(0, 10)
  }

  /** Returns the spans in which a local time may lie. Offsets and changes are at most a day. */
  private spansAround(local: number): OffsetSpan[] {
    const spans: OffsetSpan[] = []
    for (let moment = local - 2 * DAY_MS; moment <= local + 2 * DAY_MS; ) {
      const span = this.spanAt(moment)
      spans.push(span)
      moment = span.end
    }
    return spans
  }
}

/** Returns an offset such as +05:30; those of the time before standard time have seconds. */
function formatOffset(offset: number): string {
  const size = Math.abs(offset)
  const parts = [Math.floor(size / HOUR_MS), Math.floor((size % HOUR_MS) / MINUTE_MS), (size % MINUTE_MS) / 1_000]
  const text = parts.map((part) => String(part).padStart(2, '0'))
  return `${offset < 0 ? '-' : '+'}${(parts[2] ? text : text.slice(0, 2)).join(':')}`
}

/** Return the local start of the interval that contains a local time. Weeks begin on Monday. */
export const startOfInterval: Record<Interval, (local: number) => number> = {
  hour: (local) => Math.floor(local / HOUR_MS) * HOUR_MS,
  day: (local) => Math.floor(local / DAY_MS) * DAY_MS,
  week: (local) => startOfInterval.day(local) - ((new Date(local).getUTCDay() + 6) % 7) * DAY_MS,
  month: (local) => new Date(startOfInterval.day(local)).setUTCDate(1),
  quarter: (local) =>
    new Date(startOfInterval.month(local)).setUTCMonth(Math.floor(new Date(local).getUTCMonth() / 3) * 3),
  year: (local) => new Date(startOfInterval.day(local)).setUTCMonth(0, 1),
}

/** Returns the quarter of a local time, such as 2029-Q1. */
export const formatQuarter = (local: number) =>
  `${new Date(local).getUTCFullYear()}-Q${Math.floor(new Date(local).getUTCMonth() / 3) + 1}`

/** Returns a zone that is always as far ahead of UTC. */
export const createFixedZone = (name: string, offset: number) =>
  new TimeZone(name, { starts: [Number.NEGATIVE_INFINITY], offsets: [offset], repeats: false })

export const UTC = createFixedZone('UTC', 0)

const MAX_ZONES = 1_000
const zones = new BoundedMap<string, TimeZone>(MAX_ZONES)
let nameIndex: { of: unknown; names: Map<string, string> } | undefined

/** Returns the zone of an IANA name in any case; undefined for an unknown one. */
export function findTimeZone(name: string): TimeZone | undefined {
  if (name === UTC.name) return UTC
  const data = getZoneData()
  if (nameIndex?.of !== data) {
    nameIndex = { of: data, names: new Map(data.names.map((known) => [known.toLowerCase(), known])) }
    zones.clear()
  }
  const known = nameIndex.names.get(name.toLowerCase())
  if (known === undefined) return
  const cached = zones.get(known)
  if (cached) return cached
  const rules = data.readRules(known)
  if (!rules) return
  const zone = new TimeZone(known, rules)
  zones.set(known, zone)
  return zone
}

/** Says that a zone is unknown, and which one was probably meant. */
export function unknownTimeZoneMessage(name: string): string {
  const near = findNearestKey(name, getZoneData().names)
  return `There is no time zone "${name}". ${near ? `Did you mean ${near}?` : 'Use an IANA name such as Europe/Lisbon.'}`
}

/** Returns the zone of an IANA name. @throws 400 INVALID_INPUT for an unknown one, naming `path` */
export const requireTimeZone = (name: string, path = 'timezone'): TimeZone =>
  findTimeZone(name) ?? badRequest({ path, message: unknownTimeZoneMessage(name) })

/** Returns the names of all zones, in alphabetical order. */
export const listTimeZones = (): string[] => [...getZoneData().names].sort()

/** Returns which release of the IANA time zone database is used, and whether it is `built-in` or from which folder. */
export function describeTimeZones(): { version: string; source: string } {
  const { version, origin } = getZoneData()
  return { version, source: origin }
}
