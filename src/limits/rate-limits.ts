import { eq } from 'drizzle-orm'
import { notFound } from '../core/problem'
import { getSettings } from '../platform/settings/tenant-settings'
import { cached, writeInvalidating } from '../tenancy/cache'
import { recordOperatorEvent } from '../tenancy/operator-events'
import { registry } from '../tenancy/registry'
import { tenantLimits, tenants } from '../tenancy/tables'
import type { Tenant } from '../tenancy/tenants'
import { limitSettings } from './limit-settings'
import type { CallerLimits, ChosenRateLimits, RateLimits } from './shapes'

/** The limits that apply where the operator has set none: generous for the app of one person. */
export const DEFAULT_RATE_LIMITS: RateLimits = {
  guests: { reads: 600, writes: 300, costly: 120 },
  users: { reads: 6_000, writes: 3_000, costly: 1_200 },
}

/** Returns the limits that the operator has set for a tenant. */
export const getOperatorLimits = (tenant: string): ChosenRateLimits | Promise<ChosenRateLimits> =>
  cached(registry, 'tenants', `rate limits ${tenant}`, async () => {
    const row = await registry.db.select().from(tenantLimits).where(eq(tenantLimits.tenant, tenant)).get()
    return row?.rates ?? {}
  })

/** Replaces the limits that the operator has set for a tenant. @throws 404 TENANT_NOT_FOUND */
export const setOperatorLimits = (tenant: string, rates: ChosenRateLimits) =>
  writeInvalidating(registry, 'tenants', async (tx) => {
    if (!(await tx.$count(tenants, eq(tenants.id, tenant)))) notFound('tenant')
    await tx
      .insert(tenantLimits)
      .values({ tenant, rates })
      .onConflictDoUpdate({ target: tenantLimits.tenant, set: { rates } })
    await recordOperatorEvent(tx, 'limits-changed', tenant, { rates })
  })

/** Returns the limits that a tenant's own settings can only lower. */
export const getAllowedLimits = async (tenant: string): Promise<RateLimits> =>
  toAllowedLimits(await getOperatorLimits(tenant))

/** The limits in force, with the objects from which they were computed. */
type ComputedLimits = { operator: ChosenRateLimits; own: ChosenRateLimits; inForce: RateLimits }
const computedByDb = new WeakMap<Tenant['db'], ComputedLimits>()

/** Returns the limits in force for a tenant; without a promise when they are cached. */
export function getRateLimits(tenant: Tenant): RateLimits | Promise<RateLimits> {
  const operator = getOperatorLimits(tenant.tenant)
  const own = getSettings(tenant, limitSettings)
  if (operator instanceof Promise || own instanceof Promise)
    return Promise.all([operator, own]).then(([operator, own]) => toLimitsInForce(tenant, operator, own))
  return toLimitsInForce(tenant, operator, own)
}

function toLimitsInForce({ db }: Tenant, operator: ChosenRateLimits, own: ChosenRateLimits): RateLimits {
  const computed = computedByDb.get(db)
  if (computed?.operator === operator && computed.own === own) return computed.inForce
  const allowed = toAllowedLimits(operator)
  const inForce = { guests: lowerLimits(allowed.guests, own.guests), users: lowerLimits(allowed.users, own.users) }
  computedByDb.set(db, { operator, own, inForce })
  return inForce
}

const toAllowedLimits = ({ guests, users }: ChosenRateLimits): RateLimits => ({
  guests: { ...DEFAULT_RATE_LIMITS.guests, ...guests },
  users: { ...DEFAULT_RATE_LIMITS.users, ...users },
})

const lowerLimits = (allowed: CallerLimits, own: Partial<CallerLimits> = {}): CallerLimits => ({
  reads: Math.min(allowed.reads, own.reads ?? allowed.reads),
  writes: Math.min(allowed.writes, own.writes ?? allowed.writes),
  costly: Math.min(allowed.costly, own.costly ?? allowed.costly),
})
