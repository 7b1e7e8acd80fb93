import { Problem } from '../../core/problem'
import { getAllowedOrigins, isLoopbackHost } from '../../http/allowed-origins'
import { isHttps, requestAuthority } from '../../tenancy/client-connection'
import { findTenantByHost, type Tenant } from '../../tenancy/tenants'

/** For whom a passkey is good (WebAuthn §4, "RP ID"), and the page that asks for it. */
export type RelyingParty = { id: string; origin: string }

/**
 * The host of the page that asks: a website of the tenant's, or the tenant's own host where it was asked. What a browser
 * or anybody else says in a header counts only when it is one of these. @throws 403 UNKNOWN_ORIGIN
 */
export async function resolveRelyingParty(tenant: Tenant, request: Request): Promise<RelyingParty> {
  const ownOrigin = `${isHttps(request) ? 'https' : 'http'}://${requestAuthority(request)}`
  const { hostname = '', origin = '' } = URL.parse(request.headers.get('origin') ?? ownOrigin) ?? {}
  // An address of numbers can be no relying party (WebAuthn §5.1.3, step 8).
  const isHostName = !!hostname && !/^[\d.]+$|^\[/.test(hostname)
  if (isHostName && ((await getAllowedOrigins(tenant)).has(origin) || (await isOwnHost(tenant, request, origin))))
    return { id: hostname, origin }
  throw new Problem(
    403,
    'UNKNOWN_ORIGIN',
    'Passkeys only work on websites of this tenant that have a host name. Ask an administrator to add this website to websiteUrls.',
  )
}

/** Whether the page comes from where it asks, and the tenant answers there by its name, or this is somebody's own machine. */
async function isOwnHost({ tenant }: Tenant, request: Request, origin: string): Promise<boolean> {
  const { host, hostname } = new URL(origin)
  if (host !== requestAuthority(request)) return false
  return isLoopbackHost(hostname) || (await findTenantByHost(hostname))?.tenant === tenant
}
