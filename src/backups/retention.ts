import { DAY_MS } from '../core/clock'

/** How many of the latest days, weeks and months keep their last backup, and how many days keep their log. */
export type Retention = Record<'daily' | 'weekly' | 'monthly' | 'log', number>

/** Returns the retention of a setting such as `daily=7 weekly=4 monthly=12`, or undefined for `all`. */
export function parseRetention(text: string): Retention | undefined {
  if (text === 'all') return
  const counts = text.split(/ +/).map((part) => part.split('='))
  return {
    daily: 0,
    weekly: 0,
    monthly: 0,
    ...Object.fromEntries(counts.map(([name, count]) => [name, Number(count)])),
  }
}

const MONDAY_MS = 4 * DAY_MS // 1970 began with a Thursday

/** The names of the periods of a moment in UTC (ms since 1970), by which backups are grouped. Weeks begin on Monday. */
const PERIODS: Record<Exclude<keyof Retention, 'log'>, (time: number) => string | number> = {
  daily: (time) => Math.floor(time / DAY_MS),
  weekly: (time) => Math.floor((time - MONDAY_MS) / (7 * DAY_MS)),
  monthly: (time) => new Date(time).toISOString().slice(0, 7),
}

/**
 * Returns the times of the backups to remove: those that are not the last one of one of the latest days, weeks and
 * months that have backups. The latest backup is always kept.
 */
export function listExpired(times: number[], retention: Retention): number[] {
  const latestFirst = times.toSorted((one, other) => other - one)
  const kept = new Set(latestFirst.slice(0, 1))
  for (const [name, toPeriod] of Object.entries(PERIODS)) {
    const lastOfPeriods = new Map<string | number, number>()
    for (const time of latestFirst) if (!lastOfPeriods.has(toPeriod(time))) lastOfPeriods.set(toPeriod(time), time)
    for (const time of [...lastOfPeriods.values()].slice(0, retention[name as keyof typeof PERIODS])) kept.add(time)
  }
  return latestFirst.filter((time) => !kept.has(time))
}
