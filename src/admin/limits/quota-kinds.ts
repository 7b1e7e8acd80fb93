import type { TenantQuotas } from '../api/schema'

/** What there are quotas of. */
export type QuotaKind = keyof TenantQuotas['usage']

export const QUOTA_LABELS: Record<QuotaKind, string> = {
  entities: 'Entities',
  users: 'Users',
  storage: 'Storage',
  files: 'Files',
  lambdaSeconds: 'Seconds of lambdas per day',
  aiTokens: 'Tokens of AI per month',
  mails: 'Mails per day',
}
export const quotaKinds = Object.keys(QUOTA_LABELS) as QuotaKind[]

const UNITS = ['', 'K', 'M', 'G', 'T']

/** Returns the bytes of a size such as 500M, or undefined for another text. */
export function parseSize(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,12})([KMGT]?)$/i.exec(text.trim()) ?? []
  return digits === undefined ? undefined : Number(digits) * 1_024 ** UNITS.indexOf(unit.toUpperCase())
}

/** Returns a size as it is typed, exactly: 2G, or 1500. */
export function toSizeText(bytes: number): string {
  let step = 0
  while (bytes > 0 && step < UNITS.length - 1 && bytes % 1_024 ** (step + 1) === 0) step++
  return `${bytes / 1_024 ** step}${UNITS[step]}`
}

const BYTE_UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']

/** Returns an amount as people read it: 1,234 or, for storage, 1.2 MiB. */
export function formatAmount(kind: QuotaKind, amount: number): string {
  const step =
    kind === 'storage' && amount > 0 ? Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log2(amount) / 10)) : 0
  const digits = (amount / 1_024 ** step).toLocaleString(undefined, {
    maximumFractionDigits: kind === 'storage' ? 1 : 0,
  })
  return kind === 'storage' ? `${digits} ${BYTE_UNITS[step]}` : digits
}
