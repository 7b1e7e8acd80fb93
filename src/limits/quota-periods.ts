import { now, toIsoString } from '../core/clock'
import type { QuotaKind } from './shapes'

/** The kinds of which use begins anew with each day or month of UTC. */
const PERIODS: Partial<Record<QuotaKind, 'day' | 'month'>> = { lambdaSeconds: 'day', mails: 'day', aiTokens: 'month' }

/** Returns `day` or `month` for a kind whose use begins anew with it. */
export const periodOf = (kind: QuotaKind) => PERIODS[kind]

/** Returns the current day or month of a kind, such as `2026-11-23` or `2026-11`; empty for the other kinds. */
export function currentPeriod(kind: QuotaKind): string {
  const period = PERIODS[kind]
  return period ? toIsoString(now()).slice(0, period === 'day' ? 10 : 7) : ''
}
