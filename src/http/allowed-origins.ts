import { Problem } from '../core/problem'
import { appSettings } from '../platform/settings/app-settings'
import { getSettings } from '../platform/settings/tenant-settings'
import type { Store } from '../storage/port'
import { cached } from '../tenancy/cache'
import { requestAuthority } from '../tenancy/client-connection'

/** The origins of a tenant's websites, at once when they are known. */
export const getAllowedOrigins = (tenant: Pick<Store, 'db' | 'remoteVersion'>) =>
  cached(tenant, 'configurations', 'origins', async () => {
    const { websiteUrls } = await getSettings(tenant, appSettings)
    return new Set(websiteUrls.flatMap((url) => toOrigin(url) ?? []))
  })

/**
 * A browser sends cookies, and takes them, whoever made it ask; so it must also say that it was a page of ours, or of a
 * website of ours. @throws 403 CROSS_SITE
 */
export async function assertSameSite(request: Request, tenant: Pick<Store, 'db' | 'remoteVersion'>) {
  const origin = request.headers.get('origin')
  const isForeign = origin && URL.parse(origin)?.host !== requestAuthority(request)
  if (isForeign ? !(await getAllowedOrigins(tenant)).has(origin) : isCrossSite(request))
    throw new Problem(403, 'CROSS_SITE', 'Cross-site requests must not write here.')
}

/** Whether a browser says that a page of another site had it ask (Fetch Metadata). */
export const isCrossSite = ({ headers }: Request) => headers.get('sec-fetch-site') === 'cross-site'

/** The origin of an absolute address of a website. */
export function toOrigin(url: string): string | undefined {
  const { protocol, origin } = URL.parse(url) ?? {}
  return protocol === 'http:' || protocol === 'https:' ? origin : undefined
}

/** Whether this machine is meant, whoever says so: nobody else can be reached at such a host. */
export const isLoopbackHost = (host: string) => /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(host)
