import type { TenantQuotas } from '../api/schema'
import { formatBytes } from '../ui/format-bytes'

/** What there are quotas of. */
export type QuotaKind = keyof TenantQuotas['usage']

export const QUOTA_LABELS: Record<QuotaKind, string> = {
  blueprints: 'Blueprints',
  entities: 'Entities',
  users: 'Users',
  storage: 'Storage',
  files: 'Files',
  lambdaSeconds: 'Seconds of lambdas per day',
  aiTokens: 'Tokens of AI per month',
  mails: 'Mails per day',
}
export const quotaKinds = Object.keys(QUOTA_LABELS) as QuotaKind[]

/** Returns an amount as people read it: 1,234 or, for storage, 1.2 MiB. */
export const formatAmount = (kind: QuotaKind, amount: number): string =>
  kind === 'storage' ? formatBytes(amount) : amount.toLocaleString(undefined, { maximumFractionDigits: 0 })
