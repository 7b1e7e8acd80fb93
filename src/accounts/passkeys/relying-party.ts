import { Problem } from '../../core/problem'
import { getAllowedOrigins, isLoopbackHost } from '../../http/allowed-origins'
import { isHttps, requestAuthority } from '../../tenancy/client-connection'
import { findTenantByHost, type Tenant } from '../../tenancy/tenants'

/** The host for which a passkey is valid (WebAuthn §4, "RP ID"), and the origin of the page that requests it. */
export type RelyingParty = { id: string; origin: string }

/**
 * Returns the host and the origin of the page that sends the request: a website of the tenant, or the tenant's own host
 * if the request was sent there. An Origin header with another value is not trusted.
 * @throws 403 UNKNOWN_ORIGIN
 */
export async function resolveRelyingParty(tenant: Tenant, request: Request): Promise<RelyingParty> {
  const ownOrigin = `${isHttps(request) ? 'https' : 'http'}://${requestAuthority(request)}`
  const { hostname = '', origin = '' } = URL.parse(request.headers.get('origin') ?? ownOrigin) ?? {}
  // An IP address cannot be a relying party (WebAuthn §5.1.3, step 8).
  const isHostName = !!hostname && !/^[\d.]+$|^\[/.test(hostname)
  if (isHostName && ((await getAllowedOrigins(tenant)).has(origin) || (await isOwnHost(tenant, request, origin))))
    return { id: hostname, origin }
  throw new Problem(
    403,
    'UNKNOWN_ORIGIN',
    'Passkeys only work on websites of this tenant that have a host name. Ask an administrator to add this website to websiteUrls.',
  )
}

/**
 * Returns whether the page has the same host as the request, and the host is one of the tenant or of the local machine.
 */
async function isOwnHost({ tenant }: Tenant, request: Request, origin: string): Promise<boolean> {
  const { host, hostname } = new URL(origin)
  if (host !== requestAuthority(request)) return false
  return isLoopbackHost(hostname) || (await findTenantByHost(hostname))?.tenant === tenant
}
