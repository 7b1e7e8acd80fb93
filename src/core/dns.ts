import { Resolver } from 'node:dns/promises'

const NO_RECORD_CODES = ['ENOTFOUND', 'ENODATA']
const FIRST_TRY_TIMEOUT_MS = 1_500 // doubled for the second try

/**
 * Returns the character strings of a name's TXT records (RFC 1035 §3.3.14); an empty list when the name has no such
 * record. Returns undefined when no server answered, which says nothing about the name. Asks `servers`, or the system's
 * servers when there are none.
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
