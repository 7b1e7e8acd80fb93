import { config } from '../config'
import { toChunks } from '../core/chunks'
import { now, toIsoString } from '../core/clock'
import { lookupTxtRecords } from '../core/dns'
import { parseList } from '../core/setting-types'

const PARALLEL_LOOKUPS = 20

/** Returns the TXT record by which the owner of a host allows a tenant to use it. */
export const proofRecordOf = (tenant: string, host: string) => ({
  type: 'TXT' as const,
  name: `_atoll.${host}`,
  value: `atoll-tenant=${tenant}`,
})

/** Tells whether the DNS has the proof; undefined when no server answered. */
export async function isHostProven(tenant: string, host: string): Promise<boolean | undefined> {
  const { name, value } = proofRecordOf(tenant, host)
  const texts = await lookupTxtRecords(name, parseList(config.ATOLL_DNS_SERVERS))
  return texts?.some((text) => text.trim() === value)
}

/** Returns the hosts whose proof the DNS has. */
export async function filterProvenHosts(tenant: string, hosts: string[]): Promise<string[]> {
  const proven: string[] = []
  for (const batch of toChunks(hosts, PARALLEL_LOOKUPS)) {
    const results = await Promise.all(batch.map((host) => isHostProven(tenant, host)))
    proven.push(...batch.filter((_, i) => results[i]))
  }
  return proven
}

/** Returns the columns of a host whose record was just found. */
export const proofCheckFields = () => ({ checked: toIsoString(now()), missing: null })
