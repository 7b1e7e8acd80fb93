import { DAY_MS } from '../core/clock'

/** A length of time in calendar units. */
export type Span = { unit: 'days' | 'months'; value: number }

/** A billing cycle. */
export type Cycle = 'monthly' | 'yearly'

export const cycleSpan = (cycle: Cycle): Span => ({ unit: 'months', value: cycle === 'yearly' ? 12 : 1 })

/** Adds a span to a moment (ms, UTC). Months clamp to the end of the month: 31 January plus a month is the end of February. */
export function addSpan(moment: number, { unit, value }: Span): number {
  if (unit === 'days') return moment + value * DAY_MS
  const from = new Date(moment)
  const first = Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + value, 1)
  const [year, month] = [new Date(first).getUTCFullYear(), new Date(first).getUTCMonth()]
  const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate()
  return Date.UTC(year, month, Math.min(from.getUTCDate(), last)) + (((moment % DAY_MS) + DAY_MS) % DAY_MS)
}

/**
 * Returns the first period, counted from an anchor, that ends after a moment (ms). Periods are counted, not added to each
 * other: those from 31 January begin on 28 February and on 31 March.
 */
export function periodAfter(anchor: number, span: Span, moment: number): { start: number; end: number } {
  const n = countPeriods(anchor, span, moment)
  return { start: startOfPeriod(anchor, span, n), end: startOfPeriod(anchor, span, n + 1) }
}

const startOfPeriod = (anchor: number, { unit, value }: Span, n: number) => addSpan(anchor, { unit, value: value * n })

/** Returns how many whole periods lie between an anchor and a moment (ms). */
function countPeriods(anchor: number, span: Span, moment: number): number {
  const shortest = span.value * (span.unit === 'days' ? DAY_MS : SHORTEST_MONTH_MS)
  // No period is shorter, so this number is at most too large, and a few steps back find it.
  let n = Math.max(0, Math.ceil((moment - anchor) / shortest))
  while (n > 0 && startOfPeriod(anchor, span, n) > moment) n--
  return n
}

const SHORTEST_MONTH_MS = 28 * DAY_MS

/** Returns whether a period counted from an anchor begins at a moment (ms). A provider's time of day may differ. */
export const isCountedFrom = (anchor: number, span: Span, moment: number) =>
  Math.abs(periodAfter(anchor, span, moment + DAY_MS - 1).start - moment) < DAY_MS

/** Returns a function for the start of the nth period from `first` on, counted from the anchor if that is a period of its. */
export function countedStarts(anchor: string | null, span: Span, first: number) {
  const from = anchor === null ? first : Date.parse(anchor)
  if (!isCountedFrom(from, span, first)) return (n: number) => startOfPeriod(first, span, n)
  const skipped = countPeriods(from, span, first + DAY_MS - 1)
  return (n: number) => (n === 0 ? first : startOfPeriod(from, span, skipped + n))
}

/** Returns the period whose length is nearest to a billing cycle; of equals, the last. Undefined without any. */
export const fittingPeriod = <Given extends { periodStart: number; periodEnd: number }>(
  periods: Given[] | undefined,
  cycle: Cycle,
): Given | undefined => {
  const length = cycle === 'yearly' ? 365 * DAY_MS : 30 * DAY_MS
  const distance = ({ periodStart, periodEnd }: Given) => Math.abs(periodEnd - periodStart - length)
  return periods?.length ? periods.reduce((best, one) => (distance(one) <= distance(best) ? one : best)) : undefined
}
