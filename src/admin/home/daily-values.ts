const DAY_MS = 86_400_000

/** How many days the figures of Home look back. */
const DAYS_SHOWN = 30

const toDay = (moment: number) => new Date(moment).toISOString().slice(0, 10)

/** Returns the first of the days that Home shows, such as 2026-03-01; days are those of UTC, as the server's. */
export const firstDayShown = () => toDay(Date.now() - (DAYS_SHOWN - 1) * DAY_MS)

/** Returns the value of each day until today; days that are missing are 0. */
export function fillDays(values: Iterable<readonly [day: string, value: number]>): number[] {
  const byDay = new Map<string, number>()
  for (const [day, value] of values) byDay.set(day, (byDay.get(day) ?? 0) + value)
  return Array.from({ length: DAYS_SHOWN }, (_, n) => byDay.get(toDay(Date.now() - (DAYS_SHOWN - 1 - n) * DAY_MS)) ?? 0)
}

/** Returns the sum of values. */
export const addUp = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)
