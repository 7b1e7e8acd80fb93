import { DAY } from '../core/clock'
import { report } from '../core/log'
import { holding } from '../jobs/holding'
import type { Chore } from '../jobs/housekeeping'
import { emit } from '../jobs/outbox'
import { checkTenant, type Tenant } from '../tenancy/tenants'

const WEEK = 7 * DAY

/** Reads all of a tenant's database once a week, whichever process does it, and tells what is wrong with it. */
export const checkWeekly: Chore = (tenant) =>
  holding(tenant, 'integrity-check', (held) => checkIntegrity(held), { rest: WEEK })

/** Reads all of a tenant's database. What is wrong is told by the log, and by an event where one can be written still. */
export async function checkIntegrity(tenant: Tenant): Promise<string[]> {
  const flaws = await checkTenant(tenant.tenant)
  if (!flaws.length) return flaws
  report('DATABASE_DAMAGED', { tenant: tenant.tenant, flaws })
  const description = 'The database is damaged. Restore it from a backup.'
  const told = { source: 'storage', kind: 'database', eventName: 'database-damaged', description, metadata: { flaws } }
  await tenant
    .write((tx) => emit(tenant, tx, told))
    .catch((cause) => report('EVENT_NOT_WRITTEN', { tenant: tenant.tenant, cause }))
  return flaws
}
