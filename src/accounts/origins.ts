import { Problem } from '../core/problem'
import type { Store } from '../storage/port'
import { authorityOf } from '../tenancy/caller'
import { recall } from '../tenancy/memory'
import { settingsOf } from './settings'

/** The origins of a tenant's websites, at once when they are known. */
export const originsOf = (tenant: Pick<Store, 'db' | 'heard'>) =>
  recall(tenant, 'configurations', 'origins', async () => {
    const { websiteUrls } = await settingsOf(tenant, 'app-configuration')
    return new Set(websiteUrls.flatMap((url) => originOf(url) ?? []))
  })

/**
 * A browser sends cookies, and takes them, whoever made it ask; so it must also say that it was a page of ours, or of a
 * website of ours. @throws 403 CROSS_SITE
 */
export async function refuseForeign(request: Request, tenant: Pick<Store, 'db' | 'heard'>) {
  const origin = request.headers.get('origin')
  const foreign = origin && URL.parse(origin)?.host !== authorityOf(request)
  if (foreign ? !(await originsOf(tenant)).has(origin) : isCrossSite(request))
    throw new Problem(403, 'CROSS_SITE', 'This came from a page of another site, which may not write here.')
}

/** Whether a browser says that a page of another site had it ask (Fetch Metadata). */
export const isCrossSite = ({ headers }: Request) => headers.get('sec-fetch-site') === 'cross-site'

/** The origin of an absolute address of a website. */
export function originOf(url: string): string | undefined {
  const { protocol, origin } = URL.parse(url) ?? {}
  return protocol === 'http:' || protocol === 'https:' ? origin : undefined
}

/** Whether this machine is meant, whoever says so: nobody else can be reached at such a host. */
export const isLoopback = (host: string) => /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(host)
