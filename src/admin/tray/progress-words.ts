import type { Work } from './work'

const MIN_MEASURED_MS = 1_000
const MINUTE_S = 60
const BYTE_UNITS = ['B', 'kB', 'MB', 'GB'] as const

/** Returns a number of bytes as people write it. */
export function formatBytes(bytes: number): string {
  const power = Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  return `${(bytes / 1_000 ** power).toLocaleString(undefined, { maximumFractionDigits: power ? 1 : 0 })} ${BYTE_UNITS[power]}`
}

const formatAmount = (amount: number, unit: Work['unit']) =>
  unit === 'bytes' ? formatBytes(amount) : Math.round(amount).toLocaleString()

const formatSeconds = (seconds: number) =>
  seconds < MINUTE_S ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / MINUTE_S)} min`

/** Returns how far work is: its count, its speed, and the time that is left. */
export function describeProgress({ done, total, unit, startedAt }: Work, now: number): string {
  const count = total ? `${formatAmount(done, unit)} of ${formatAmount(total, unit)}` : formatAmount(done, unit)
  const words = [unit === 'rows' ? `${count} rows` : count]
  const elapsed = now - startedAt
  if (elapsed > MIN_MEASURED_MS && done > 0) {
    const perSecond = (done / elapsed) * 1_000
    words.push(`${formatAmount(perSecond, unit)} a second`)
    if (total && total > done) words.push(`${formatSeconds((total - done) / perSecond)} left`)
  }
  return words.join(' · ')
}
