import { and, asc, eq, gt, isNull, lt, or } from 'drizzle-orm'
import { tenantMigrations } from '../../migrations'
import { getErrorChain } from '../core/log'
import { notFound } from '../core/problem'
import { listPendingMigrations } from '../storage/port'
import { measureDatabase } from './database-size'
import { databases, rebuildIndexes } from './databases'
import { locationOf } from './placement'
import { registry } from './registry'
import { tenants } from './tables'
import { migrateTenant } from './tenants'

/** The schema version of this program. */
export const CURRENT_SCHEMA_VERSION = tenantMigrations.sqlite.length

/** The result of bringing a tenant up to date: `error` tells why it could not be. */
export type MigrationResult = { tenant: string; error?: string }

/** Brings the database of a tenant up to date, and records the result. @throws 404 TENANT_NOT_FOUND */
export async function migrateAndRecord(tenant: string): Promise<MigrationResult> {
  const error = await migrateTenant(tenant).then(
    () => undefined,
    (cause) => (getErrorChain(cause).at(-1) as Error).message,
  )
  const state = error ? { schemaProblem: error } : { schemaVersion: CURRENT_SCHEMA_VERSION, schemaProblem: null }
  await registry.write((tx) => tx.update(tenants).set(state).where(eq(tenants.id, tenant)))
  return { tenant, ...(error && { error }) }
}

/** Returns the next tenants after an id whose databases are not recorded as up to date. */
export async function listOutdatedTenants(after: string, limit: number): Promise<string[]> {
  const isOutdated = or(isNull(tenants.schemaVersion), lt(tenants.schemaVersion, CURRENT_SCHEMA_VERSION))
  const found = await registry.db
    .select({ id: tenants.id })
    .from(tenants)
    .where(and(gt(tenants.id, after), isOutdated))
    .orderBy(asc(tenants.id))
    .limit(limit)
  return found.map(({ id }) => id)
}

/** What bringing a tenant up to date would do: `pending` is the number of migrations, `copyBytes` the room for a copy. */
export type UpgradePlan = {
  tenant: string
  schemaVersion: number | null
  pending: number
  rewrites: boolean
  copyBytes: number
  problem: string | null
}

/** Returns what bringing each tenant up to date would do, and changes nothing. */
export async function planUpgrade(): Promise<UpgradePlan[]> {
  const plans: UpgradePlan[] = []
  for (const entry of await registry.db.select().from(tenants).orderBy(asc(tenants.id))) {
    const plan = { tenant: entry.id, schemaVersion: null, pending: 0, rewrites: false, copyBytes: 0, problem: null }
    try {
      const schemaVersion = await databases.readSchemaVersion(locationOf(entry))
      const pending = listPendingMigrations(schemaVersion, tenantMigrations.sqlite).length
      const rewrites = !!tenantMigrations.rewriting?.some((number) => number > schemaVersion)
      const copyBytes = rewrites ? ((await measureDatabase(entry)) ?? 0) : 0
      plans.push({ ...plan, schemaVersion, pending, rewrites, copyBytes })
    } catch (error) {
      plans.push({ ...plan, problem: (getErrorChain(error).at(-1) as Error).message })
    }
  }
  return plans
}

/** Builds all indexes of a tenant's file anew. PostgreSQL has commands of its own for that. @throws 404 TENANT_NOT_FOUND */
export async function rebuildTenantIndexes(id: string): Promise<void> {
  const entry = (await registry.db.select().from(tenants).where(eq(tenants.id, id)).get()) ?? notFound('tenant')
  if (!entry.home) await rebuildIndexes(locationOf(entry))
}
