import { Cron, CronPattern } from 'croner'
import type { TimeZone } from '../../core/time-zone'
import type { OffsetSpan } from '../../core/zone-data/zone-rules'

/** The local times of a cron expression. */
type LocalTimes = {
  /** Returns the first that is not before another local time. */
  next(local: number): number | undefined
  /** Whether it is for every hour of a day. */
  isHourly: boolean
}

/** @throws Error for an invalid expression */
function parseCron(cron: string): LocalTimes {
  // The library takes local times for times in UTC, where each exists once.
  const times = new Cron(cron, { timezone: 'UTC', paused: true })
  return {
    next: (local) => times.nextRun(new Date(local - 1))?.getTime(),
    isHourly: new CronPattern(cron, 'UTC').hour.every((isDue) => isDue === 1),
  }
}

/**
 * Returns the first moment after another at which a cron expression is due in a zone; undefined if there is none. A local
 * time that the clocks skip is shifted by as much as they go forward. One that occurs twice is due at the first, unless
 * the expression is for every hour. @throws Error for an invalid expression
 */
export function findNextCronTime(cron: string, zone: TimeZone, moment: number): number | undefined {
  const times = parseCron(cron)
  let span = zone.spanAt(moment + 1)
  let from = moment + 1
  while (times.next(from + span.offset) !== undefined) {
    const before = Number.isFinite(span.start) ? zone.spanAt(span.start - 1) : span
    const due = Math.min(findShown(times, span, before, from), findSkipped(times, span, before, from))
    if (due < span.end) return due
    from = span.end
    span = zone.spanAt(from)
  }
}

/** Returns when the clocks first show a due time in a span. */
function findShown({ next, isHourly }: LocalTimes, span: OffsetSpan, before: OffsetSpan, from: number): number {
  // What the clocks show again after they were set back was due before.
  const repeatedUntil = isHourly ? Number.NEGATIVE_INFINITY : span.start + before.offset
  const local = next(Math.max(from + span.offset, repeatedUntil))
  return local === undefined ? Number.POSITIVE_INFINITY : local - span.offset
}

/** Returns when the first due time is made up for that the clocks skipped at the start of a span. */
function findSkipped({ next }: LocalTimes, span: OffsetSpan, before: OffsetSpan, from: number): number {
  if (span.offset <= before.offset) return Number.POSITIVE_INFINITY
  const local = next(from + before.offset) ?? Number.POSITIVE_INFINITY
  return local < span.start + span.offset ? local - before.offset : Number.POSITIVE_INFINITY
}
