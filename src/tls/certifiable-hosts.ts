import { eq, isNotNull, or } from 'drizzle-orm'
import { config } from '../config'
import { parseList } from '../core/setting-types'
import { cached } from '../tenancy/cache'
import { isPublicName } from '../tenancy/hosts'
import { registry } from '../tenancy/registry'
import { hosts } from '../tenancy/tables'

const HOST_NAME = /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$/

/**
 * Returns the hosts that get certificates, with their tenants: those that the operator has given or the DNS has proven,
 * and the installation's own names, which belong to no tenant. Nobody else can make the server order one.
 */
export const listCertifiableHosts = async (): Promise<Map<string, string>> =>
  cached(registry, 'certificates', 'certifiable hosts', async () => {
    const isOwned = or(eq(hosts.given, true), isNotNull(hosts.checked))
    const rows = await registry.db.select({ host: hosts.host, tenant: hosts.tenant }).from(hosts).where(isOwned)
    const publicHosts = parseList(config.ATOLL_PUBLIC_HOSTS.toLowerCase()).map((host) => [host, ''] as const)
    const all = [...publicHosts, ...rows.map(({ host, tenant }) => [host, tenant] as const)]
    return new Map(all.filter(([host]) => HOST_NAME.test(host) && isPublicName(host)))
  })
