import { DAY_MS } from '../core/clock'
import { logError } from '../core/log'
import type { HousekeepingTask } from '../jobs/housekeeping'
import { emit } from '../jobs/outbox'
import { withLease } from '../jobs/with-lease'
import { checkTenantDatabase, type Tenant } from '../tenancy/tenants'

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
  if (!flaws.length) return flaws
  logError('DATABASE_DAMAGED', { tenant: tenant.tenant, flaws })
  const description = 'The database is damaged. Restore it from a backup.'
  const event = { source: 'storage', kind: 'database', eventName: 'database-damaged', description, metadata: { flaws } }
  await tenant
    .write((tx) => emit(tenant, tx, event))
    .catch((cause) => logError('EVENT_NOT_WRITTEN', { tenant: tenant.tenant, cause }))
  return flaws
}
