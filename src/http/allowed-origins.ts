import { Problem } from '../core/problem'
import { appSettings } from '../platform/settings/app-settings'
import { getSettings } from '../platform/settings/tenant-settings'
import type { Store } from '../storage/port'
import { cached } from '../tenancy/cache'
import { requestAuthority } from '../tenancy/client-connection'

/** Returns the origins of a tenant's websites, synchronously when they are cached. */
export const getAllowedOrigins = (tenant: Pick<Store, 'db' | 'remoteVersion'>) =>
  cached(tenant, 'configurations', 'origins', async () => {
    const { websiteUrls } = await getSettings(tenant, appSettings)
    return new Set(websiteUrls.flatMap((url) => toOrigin(url) ?? []))
  })

/**
 * Requires that a request comes from a page of this host or of a website of the tenant. Browsers send and accept
 * cookies whichever page causes a request.
 * @throws 403 CROSS_SITE
 */
export async function assertSameSite(request: Request, tenant: Pick<Store, 'db' | 'remoteVersion'>) {
  const origin = request.headers.get('origin')
  const isForeign = origin && URL.parse(origin)?.host !== requestAuthority(request)
  if (isForeign ? !(await getAllowedOrigins(tenant)).has(origin) : isFromOtherOrigin(request))
    throw new Problem(
      403,
      'CROSS_SITE',
      'Pages of other hosts must not write here. Let a proxy before the server keep the header Host (changeOrigin: false), or add the page to websiteUrls in the app-configuration.',
    )
}

/**
 * Returns whether the browser reports that a page of another origin caused the request (Fetch Metadata). Pages of the same
 * site count as others: tenants at sibling subdomains are one site.
 */
export const isFromOtherOrigin = ({ headers }: Request) =>
  ['cross-site', 'same-site'].includes(headers.get('sec-fetch-site') ?? '')

/** Returns whether a cookie counts where a GET may have effects: for own pages, and for those of the tenant's websites. */
export async function mayActByCookie(request: Request, tenant: Pick<Store, 'db' | 'remoteVersion'>): Promise<boolean> {
  const { headers } = request
  // Without CORS, only the Referer tells of which page it is.
  const origin = headers.get('origin') ?? toOrigin(headers.get('referer') ?? '')
  // Over plain HTTP, browsers send Fetch Metadata to the own machine only.
  const isForeign = headers.has('sec-fetch-site')
    ? isFromOtherOrigin(request)
    : origin !== undefined && URL.parse(origin)?.host !== requestAuthority(request)
  return !isForeign || (origin !== undefined && (await getAllowedOrigins(tenant)).has(origin))
}

/** Returns the origin of an http or https URL, otherwise undefined. */
export function toOrigin(url: string): string | undefined {
  const { protocol, origin } = URL.parse(url) ?? {}
  return protocol === 'http:' || protocol === 'https:' ? origin : undefined
}

/** Returns whether a host is the local machine itself: no other machine can be reached at such a host. */
export const isLoopbackHost = (host: string) => /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(host)
