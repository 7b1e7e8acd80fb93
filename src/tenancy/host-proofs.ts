import { config, itemsOf } from '../config'
import { iso, now } from '../core/clock'
import { lookupTexts } from '../core/dns'

const PARALLEL_LOOKUPS = 20

/** The TXT record by which the owner of a host says that a tenant may answer there. */
export const proofOf = (tenant: string, host: string) => ({
  type: 'TXT' as const,
  name: `_atoll.${host}`,
  value: `atoll-tenant=${tenant}`,
})

/** Whether the DNS has the proof; undefined when no server gave an answer. */
export async function isProven(tenant: string, host: string): Promise<boolean | undefined> {
  const { name, value } = proofOf(tenant, host)
  const texts = await lookupTexts(name, itemsOf(config.ATOLL_DNS_SERVERS))
  return texts?.some((text) => text.trim() === value)
}

/** Those of the hosts whose proof the DNS has. */
export async function provenHosts(tenant: string, hosts: string[]): Promise<string[]> {
  const proven: string[] = []
  for (let n = 0; n < hosts.length; n += PARALLEL_LOOKUPS) {
    const slice = hosts.slice(n, n + PARALLEL_LOOKUPS)
    const found = await Promise.all(slice.map((host) => isProven(tenant, host)))
    proven.push(...slice.filter((_, i) => found[i]))
  }
  return proven
}

/** What is noted of a host whose record was just found. */
export const foundNow = () => ({ checked: iso(now()), missing: null })
