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
