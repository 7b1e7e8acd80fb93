import { eq } from 'drizzle-orm'
import { type Awaitable, andThen } from '../core/awaitable'
import { BoundedMap } from '../core/bounded-map'
import { cached } from './cache'
import { findDefaultTenantId } from './default-tenant'
import type { TenantRecord } from './placement'
import { registry } from './registry'
import { hosts, tenants } from './tables'

/** Returns the tenant with this id; without a promise when it is cached. */
export const findById = (id: string) =>
  cached<TenantRecord | undefined>(registry, 'tenants', `id ${id}`, () =>
    registry.db.select().from(tenants).where(eq(tenants.id, id)).get(),
  )

/** Returns the tenant to which a host belongs; without a promise when it is cached. */
export const findByHost = (host: string) =>
  cached<TenantRecord | undefined>(registry, 'tenants', `host ${host}`, async () => {
    const row = await registry.db
      .select()
      .from(hosts)
      .innerJoin(tenants, eq(tenants.id, hosts.tenant))
      .where(eq(hosts.host, host))
      .get()
    return row?.tenants
  })

/** Returns the tenant for requests at a host of no tenant. */
export async function findDefaultTenant(host: string): Promise<TenantRecord | undefined> {
  const id = await findDefaultTenantId(host)
  return id === undefined ? undefined : findById(id)
}

/** Callers can invent hosts at which the default tenant answers. */
const MAX_KNOWN_HOSTS = 10_000
const cachedRecordsByHost = () =>
  cached(registry, 'tenants', 'records by host', async () => new BoundedMap<string, TenantRecord>(MAX_KNOWN_HOSTS))

/** Returns the tenant of a host, else the default tenant; without a promise when it is cached. */
export const findAtHost = (host: string): Awaitable<TenantRecord | undefined> =>
  andThen(cachedRecordsByHost(), (records) => records.get(host) ?? loadAtHost(host, records))

async function loadAtHost(host: string, records: Map<string, TenantRecord>): Promise<TenantRecord | undefined> {
  const record = (await findByHost(host)) ?? (await findDefaultTenant(host))
  if (record) records.set(host, record)
  return record
}
