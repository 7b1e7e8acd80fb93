import { eq } from 'drizzle-orm'
import { notFound } from '../core/problem'
import { cached, writeInvalidating } from '../tenancy/cache'
import { recordOperatorEvent } from '../tenancy/operator-events'
import { registry } from '../tenancy/registry'
import { tenantLimits, tenants } from '../tenancy/tables'
import { DEFAULT_QUOTAS, QUOTA_KINDS, type QuotaChange, type Quotas } from './shapes'

/** Returns the quotas of a tenant; without a promise when they are cached. */
export const getQuotas = (tenant: string): Quotas | Promise<Quotas> =>
  cached(registry, 'tenants', `quotas ${tenant}`, async () => {
    const row = await registry.db.select().from(tenantLimits).where(eq(tenantLimits.tenant, tenant)).get()
    return { ...DEFAULT_QUOTAS, ...row?.quotas }
  })

/** Changes the given quotas of a tenant; `null` removes one. @throws 404 TENANT_NOT_FOUND */
export const setQuotas = (tenant: string, change: QuotaChange) =>
  writeInvalidating(registry, 'tenants', async (tx) => {
    if (!(await tx.$count(tenants, eq(tenants.id, tenant)))) notFound('tenant')
    const before = await tx.select().from(tenantLimits).where(eq(tenantLimits.tenant, tenant)).get()
    const quotas = merge(before?.quotas ?? {}, change)
    await tx
      .insert(tenantLimits)
      .values({ tenant, rates: {}, quotas })
      .onConflictDoUpdate({ target: tenantLimits.tenant, set: { quotas } })
    await recordOperatorEvent(tx, 'quotas-changed', tenant, quotas)
  })

const merge = (before: Quotas, change: QuotaChange): Record<string, number> =>
  Object.fromEntries(
    QUOTA_KINDS.flatMap((kind) => {
      const value = change[kind] === undefined ? before[kind] : change[kind]
      return value === undefined || value === null ? [] : [[kind, value]]
    }),
  )
