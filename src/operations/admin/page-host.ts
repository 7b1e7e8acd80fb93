import { config } from '../../config'
import { Problem } from '../../core/problem'
import { parseList } from '../../core/setting-types'
import { isLoopbackHost } from '../../http/allowed-origins'
import { getActiveSite } from '../../sites/active-site'
import { requestHost } from '../../tenancy/client-connection'
import { findHostOwners } from '../../tenancy/hosts'
import { getDefaultTenantId, getTenantAnyStatus } from '../../tenancy/tenants'
import type { Check } from '../checks'

/** Tells whether a host is the installation's own: one of ATOLL_PUBLIC_HOSTS, else a loopback name. */
const isInstallationHost = (host: string) =>
  config.ATOLL_PUBLIC_HOSTS ? parseList(config.ATOLL_PUBLIC_HOSTS.toLowerCase()).includes(host) : isLoopbackHost(host)

/** Returns the tenant whose site answers at a host: its owner, or else the default tenant. */
export async function findSiteOwner(host: string): Promise<string | undefined> {
  const tenant = (await findHostOwners([host])).get(host) ?? (await getDefaultTenantId(host))
  if (tenant === undefined) return
  const site = await getActiveSite(await getTenantAnyStatus(tenant))
  return site.files.size ? tenant : undefined
}

/**
 * Checks that the operator's page may be at the host of a request, where no tenant has scripts of its own.
 * @throws 404 OPERATOR_PAGE_ELSEWHERE
 */
export async function assertOperatorHost(request: Request) {
  const host = requestHost(request)
  const refuse = (message: string): never => {
    throw new Problem(404, 'OPERATOR_PAGE_ELSEWHERE', message)
  }
  // A demo has the loopback names as hosts of its own; they stay the installation's as long as no site is there.
  const isOwned = !isLoopbackHost(host) && (await findHostOwners([host])).has(host)
  if (!isInstallationHost(host) || isOwned)
    refuse("The operator's page is only at the installation's own hosts: those of ATOLL_PUBLIC_HOSTS, else localhost.")
  const owner = await findSiteOwner(host)
  if (owner !== undefined)
    refuse(
      `The site of the tenant "${owner}" is at this host. Give it a host of its own: atoll tenant hosts ${owner} <host>.`,
    )
}

/** Names the sites that keep the operator's page away from the installation's own hosts, which harms nothing. */
export async function checkOperatorPage(): Promise<Check[]> {
  const hosts = config.ATOLL_PUBLIC_HOSTS ? parseList(config.ATOLL_PUBLIC_HOSTS.toLowerCase()) : ['localhost']
  const checks: Check[] = []
  for (const host of hosts) {
    // A damaged tenant has a check of its own.
    const owner = await findSiteOwner(host).catch(() => undefined)
    if (owner === undefined) continue
    const message = `the site of "${owner}" is at ${host}, so the operator's page is not; give it a host of its own: atoll tenant hosts ${owner} <host>, and then atoll tenant default --none`
    checks.push({ check: `operator's page at ${host}`, ok: true, message })
  }
  return checks
}
