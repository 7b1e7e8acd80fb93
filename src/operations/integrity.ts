import { BoundedMap } from '../core/bounded-map'
import { DAY_MS, now } from '../core/clock'
import { logError } from '../core/log'
import type { HousekeepingTask } from '../jobs/housekeeping'
import { emit } from '../jobs/outbox'
import { withLease } from '../jobs/with-lease'
import { checkTenantDatabase, type Tenant } from '../tenancy/tenants'

const MAX_DAMAGED_DATABASES = 1_000

/** The tenants whose database was damaged at its latest check in this process, and what was wrong. */
export const damagedDatabases = new BoundedMap<string, { flaws: string[]; time: number }>(MAX_DAMAGED_DATABASES)

const CHECK_INTERVAL_MS = 7 * DAY_MS

/** Checks a tenant's whole database once a week, in whichever process. */
export const checkIntegrityWeekly: HousekeepingTask = (tenant) =>
  withLease(tenant, 'integrity-check', (held) => checkIntegrity(held), { cooldownMs: CHECK_INTERVAL_MS })

/**
 * Reads a tenant's whole database and returns what is wrong with it. Errors are also logged, and emitted as an event if
 * that can still be written.
 */
export async function checkIntegrity(tenant: Tenant): Promise<string[]> {
  const flaws = await checkTenantDatabase(tenant.tenant)
  damagedDatabases.delete(tenant.tenant)
  if (!flaws.length) return flaws
  damagedDatabases.set(tenant.tenant, { flaws, time: now() })
  logError('DATABASE_DAMAGED', { tenant: tenant.tenant, flaws })
  const description = 'The database is damaged. Restore it from a backup.'
  const event = { source: 'storage', kind: 'database', eventName: 'database-damaged', description, metadata: { flaws } }
  await tenant
    .write((tx) => emit(tenant, tx, event))
    .catch((cause) => logError('EVENT_NOT_WRITTEN', { tenant: tenant.tenant, cause }))
  return flaws
}
