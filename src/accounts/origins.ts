import type { Store } from '../storage/port'
import { recall } from '../tenancy/memory'
import { settingsOf } from './settings'

/** The origins of a tenant's websites, at once when they are known. */
export const originsOf = (tenant: Pick<Store, 'db' | 'heard'>) =>
  recall(tenant, 'configurations', 'origins', async () => {
    const { websiteUrls } = await settingsOf(tenant, 'app-configuration')
    return new Set(websiteUrls.flatMap((url) => originOf(url) ?? []))
  })

/** The origin of an absolute address of a website. */
export function originOf(url: string): string | undefined {
  const { protocol, origin } = URL.parse(url) ?? {}
  return protocol === 'http:' || protocol === 'https:' ? origin : undefined
}

/** Whether this machine is meant, whoever says so: nobody else can be reached at such a host. */
export const isLoopback = (host: string) => /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(host)
