import { formatBytes } from '../core/byte-size'
import { Problem } from '../core/problem'
import { currentPeriod, periodOf } from './quota-periods'
import type { QuotaKind } from './shapes'

const NOUNS: Record<QuotaKind, [one: string, many: string]> = {
  blueprints: ['blueprint', 'blueprints'],
  entities: ['entity', 'entities'],
  users: ['user', 'users'],
  storage: ['of storage', 'of storage'],
  files: ['file', 'files'],
  lambdaSeconds: ['second of lambdas', 'seconds of lambdas'],
  aiTokens: ['token of AI', 'tokens of AI'],
  mails: ['mail', 'mails'],
}

const formatAmount = (kind: QuotaKind, amount: number) =>
  kind === 'storage' ? formatBytes(amount, 'en') : amount.toLocaleString('en', { maximumFractionDigits: 1 })

/** Returns a quota as a sentence names it, such as `100 mails a day`. */
export function describeQuota(kind: QuotaKind, limit: number): string {
  const period = periodOf(kind)
  return `${formatAmount(kind, limit)} ${NOUNS[kind][limit === 1 ? 0 : 1]}${period ? ` a ${period}` : ''}`
}

/** Returns the error for what would exceed a quota. */
export function quotaExceededProblem(kind: QuotaKind, limit: number, used: number): Problem {
  const period = periodOf(kind)
  const way = period ? `Try again when the next ${period} begins (UTC)` : 'Delete something'
  const message = `The quota of this tenant is used up: ${describeQuota(kind, limit)}. ${way}, or ask the operator of this installation for more.`
  const current = currentPeriod(kind)
  return new Problem(403, 'QUOTA_EXCEEDED', message, {
    details: { quota: kind, limit, used, ...(current && { period: current }) },
  })
}

/** Tells whether an error says that a quota is used up. */
export const isQuotaExceeded = (error: unknown) => error instanceof Problem && error.code === 'QUOTA_EXCEEDED'
