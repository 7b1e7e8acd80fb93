import { logError } from '../core/log'
import type { HousekeepingTask } from '../jobs/housekeeping'
import { getUse } from './quota-use'
import { getQuotas } from './quotas'
import { QUOTA_KINDS, type QuotaKind, type TenantQuotas } from './shapes'

/** Returns the quotas of a tenant, and how much of each it uses. */
export async function describeQuotas(tenant: string): Promise<TenantQuotas> {
  const quotas = await getQuotas(tenant)
  const measure = (kind: QuotaKind) =>
    getUse(tenant, kind, quotas[kind]).catch((cause) => {
      logError('QUOTA_USE_UNKNOWN', { tenant, quota: kind, cause })
      return null
    })
  const amounts = await Promise.all(QUOTA_KINDS.map(measure))
  const toObject = (readValue: (kind: QuotaKind, n: number) => number | null) =>
    Object.fromEntries(QUOTA_KINDS.map((kind, n) => [kind, readValue(kind, n)])) as Record<QuotaKind, number | null>
  return { ...toObject((kind) => quotas[kind] ?? null), usage: toObject((_kind, n) => amounts[n] ?? null) }
}

/** Measures what a tenant has a quota of, so that events also report use that grew without any check of it. */
export const checkQuotas: HousekeepingTask = async ({ tenant }) => {
  const quotas = await getQuotas(tenant)
  for (const kind of QUOTA_KINDS) if (quotas[kind] !== undefined) await getUse(tenant, kind, quotas[kind])
}
