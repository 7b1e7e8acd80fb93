import { isHttps, requestAuthority, requestHost } from '../tenancy/client-connection'
import { getTenantInfo } from '../tenancy/tenant-list'
import { getDefaultTenantId } from '../tenancy/tenants'

/**
 * Returns the addresses of a tenant's site: its hosts, with the scheme and port of the request; without any, the host of
 * the request, when the tenant is the default one.
 */
export async function listSiteUrls(tenant: string, request: Request): Promise<string[]> {
  const { hosts } = await getTenantInfo(tenant)
  const isDefault = !hosts.length && (await getDefaultTenantId(requestHost(request))) === tenant
  const port = /:\d+$/.exec(requestAuthority(request))?.[0] ?? ''
  const scheme = isHttps(request) ? 'https' : 'http'
  return (isDefault ? [requestHost(request)] : hosts).map((host) => `${scheme}://${host}${port}/`)
}
