import { formatBytes } from '../ui/format-bytes'
import type { Work } from './work'

const MIN_MEASURED_MS = 1_000
const MINUTE_S = 60

const formatAmount = (amount: number, unit: Work['unit']) =>
  unit === 'bytes' ? formatBytes(amount) : Math.round(amount).toLocaleString()

const formatSeconds = (seconds: number) =>
  seconds < MINUTE_S ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / MINUTE_S)} min`

/** Returns the progress of work: its count, its speed, and the time that is left. */
export function describeProgress({ done, total, unit, startedAt }: Work, now: number): string {
  const count = total ? `${formatAmount(done, unit)} of ${formatAmount(total, unit)}` : formatAmount(done, unit)
  const parts = [unit === 'rows' ? `${count} rows` : count]
  const elapsed = now - startedAt
  if (elapsed > MIN_MEASURED_MS && done > 0) {
    const perSecond = (done / elapsed) * 1_000
    parts.push(`${formatAmount(perSecond, unit)} a second`)
    if (total && total > done) parts.push(`${formatSeconds((total - done) / perSecond)} left`)
  }
  return parts.join(' · ')
}
