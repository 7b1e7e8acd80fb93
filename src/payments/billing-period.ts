import { DAY_MS } from '../core/clock'

/** A length of time, as calendars have it. */
export type Span = { unit: 'days' | 'months'; value: number }

/** A cycle of billing. */
export type Cycle = 'monthly' | 'yearly'

export const cycleSpan = (cycle: Cycle): Span => ({ unit: 'months', value: cycle === 'yearly' ? 12 : 1 })

/** Some time after a moment (ms, UTC). Months clamp to the month's end: 31 January and a month is the last of February. */
export function addSpan(moment: number, { unit, value }: Span): number {
  if (unit === 'days') return moment + value * DAY_MS
  const from = new Date(moment)
  const first = Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + value, 1)
  const [year, month] = [new Date(first).getUTCFullYear(), new Date(first).getUTCMonth()]
  const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate()
  return Date.UTC(year, month, Math.min(from.getUTCDate(), last)) + (((moment % DAY_MS) + DAY_MS) % DAY_MS)
}
