import { Resolver } from 'node:dns/promises'

const NO_RECORD_CODES = ['ENOTFOUND', 'ENODATA']
const FIRST_TRY_TIMEOUT_MS = 1_500 // ms for the first try, twice that for the second

/**
 * The character strings of a name's TXT records (RFC 1035 §3.3.14); none when the name has no such record. Undefined when no server gave an answer, which says nothing about the name. Asks `servers`, or those of the system.
 */
export async function lookupTxtRecords(name: string, servers: string[]): Promise<string[] | undefined> {
  const resolver = new Resolver({ timeout: FIRST_TRY_TIMEOUT_MS, tries: 2 })
  if (servers.length) resolver.setServers(servers)
  try {
    return (await resolver.resolveTxt(name)).flat()
  } catch (error) {
    const { code = '' } = error as { code?: string }
    return NO_RECORD_CODES.includes(code.replace(/^DNS_/, '')) ? [] : undefined
  }
}
