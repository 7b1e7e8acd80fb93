import { Problem } from '../../core/problem'
import { authorityOf, isSecure } from '../../tenancy/caller'
import { type Tenant, tenantAt } from '../../tenancy/tenants'
import { isLoopback, originsOf } from '../origins'

/** For whom a passkey is good (WebAuthn §4, "RP ID"), and the page that asks for it. */
export type RelyingParty = { id: string; origin: string }

/**
 * The host of the page that asks: a website of the tenant's, or the tenant's own host where it was asked. What a browser
 * or anybody else says in a header counts only when it is one of these. @throws 403 UNKNOWN_ORIGIN
 */
export async function relyingPartyOf(tenant: Tenant, request: Request): Promise<RelyingParty> {
  const here = `${isSecure(request) ? 'https' : 'http'}://${authorityOf(request)}`
  const { hostname = '', origin = '' } = URL.parse(request.headers.get('origin') ?? here) ?? {}
  // An address of numbers can be no relying party (WebAuthn §5.1.3, step 8).
  const named = !!hostname && !/^[\d.]+$|^\[/.test(hostname)
  if (named && ((await originsOf(tenant)).has(origin) || (await isOwn(tenant, request, origin))))
    return { id: hostname, origin }
  throw new Problem(
    403,
    'UNKNOWN_ORIGIN',
    'Passkeys work on pages of this tenant, at a host name. Ask an administrator to name this website in websiteUrls.',
  )
}

/** Whether the page comes from where it asks, and the tenant answers there by its name, or this is somebody's own machine. */
async function isOwn({ tenant }: Tenant, request: Request, origin: string): Promise<boolean> {
  const { host, hostname } = new URL(origin)
  if (host !== authorityOf(request)) return false
  return isLoopback(hostname) || (await tenantAt(hostname))?.tenant === tenant
}
