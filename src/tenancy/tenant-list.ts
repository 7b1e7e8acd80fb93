import { asc, count, eq, gt } from 'drizzle-orm'
import { throwTenantNotFound } from './missing-tenant'
import { registry } from './registry'
import { hosts, tenants } from './tables'

/** Returns all tenants with their hosts, by id. */
export const listTenants = () => describeTenants()

/** Returns the ids of the next tenants after an id, in their order. */
export async function listTenantIds(after: string, limit: number): Promise<string[]> {
  const page = registry.db.select({ id: tenants.id }).from(tenants).where(gt(tenants.id, after))
  return (await page.orderBy(asc(tenants.id)).limit(limit)).map(({ id }) => id)
}

async function describeTenants(id?: string) {
  const [records, names] = await Promise.all([
    registry.db
      .select()
      .from(tenants)
      .where(id === undefined ? undefined : eq(tenants.id, id))
      .orderBy(asc(tenants.id)),
    registry.db
      .select()
      .from(hosts)
      .where(id === undefined ? undefined : eq(hosts.tenant, id))
      .orderBy(asc(hosts.host)),
  ])
  const hostsOf = Map.groupBy(names, ({ tenant }) => tenant)
  return records.map(({ id, status, created, home, moved, outgoingHeld }) => ({
    ...{ id, status, created },
    ...(home && { home }),
    ...(moved && { moved }),
    ...(outgoingHeld && { outgoingHeld }),
    hosts: hostsOf.get(id)?.map(({ host }) => host) ?? [],
  }))
}

/** Returns one tenant with its hosts. @throws 404 TENANT_NOT_FOUND */
export const getTenantInfo = async (id: string) => (await describeTenants(id))[0] ?? throwTenantNotFound(id)

/** Tells whether the registry has a tenant with this id, without the cache. */
export const isRegistered = async (id: string) => (await registry.db.$count(tenants, eq(tenants.id, id))) > 0

/** Returns how many tenants there are of each status. */
export const countTenantsByStatus = () =>
  registry.db.select({ status: tenants.status, count: count() }).from(tenants).groupBy(tenants.status)

/** Returns how many tenants there are. */
export const countTenants = () => registry.db.$count(tenants)
