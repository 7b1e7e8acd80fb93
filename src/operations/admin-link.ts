import { config } from '../config'
import { isLoopbackHost } from '../http/allowed-origins'
import { isHttps, requestAuthority, stripPort } from '../tenancy/client-connection'
import { listAssignedHosts } from '../tenancy/hosts'

/** Returns the address of a page of the admin page of a tenant, with a secret that no server gets to see. */
export async function toAdminLink(request: Request, tenant: string, page: string, secret: string): Promise<string> {
  const [scheme, authority] = [isHttps(request) ? 'https' : 'http', requestAuthority(request)]
  const [host] = await listAssignedHosts(tenant)
  const isLocal = isLoopbackHost(stripPort(authority))
  // On the operator's own machine hosts of tenants lead nowhere.
  if (host && (!isLocal || config.ATOLL_TENANT_HEADER === 'off'))
    return `${scheme}://${host}${authority.slice(stripPort(authority).length)}/admin/${page}#${secret}`
  return `${scheme}://${authority}/admin/${page}?tenant=${tenant}#${secret}`
}
