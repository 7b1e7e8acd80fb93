const NO_RECORD_CODES = ['ENOTFOUND', 'ENODATA']
const FIRST_TRY_TIMEOUT_MS = 1_500 // doubled for the second try

/**
 * Returns the character strings of a name's TXT records (RFC 1035 §3.3.14); an empty list when the name has no such
 * record. Returns undefined when no server answered, which says nothing about the name. Asks `servers`, or the system's
 * servers when there are none.
 */
export async function lookupTxtRecords(name: string, servers: string[]): Promise<string[] | undefined> {
  const resolver = await createResolver(servers)
  try {
    return (await resolver.resolveTxt(name)).flat()
  } catch (error) {
    return isNoRecord(error as { code?: string }) ? [] : undefined
  }
}

/**
 * Tells whether a name has an address; undefined when no server answered. Asks `servers`, or the system, which also
 * knows names of the local network, when there are none.
 */
export async function hasAddress(name: string, servers: string[]): Promise<boolean | undefined> {
  if (!servers.length) return hasAddressInSystem(name)
  const resolver = await createResolver(servers)
  const outcomes = await Promise.all([resolver.resolve4(name), resolver.resolve6(name)].map(toOutcome))
  if (outcomes.includes(true)) return true
  return outcomes.includes(undefined) ? undefined : false
}

async function createResolver(servers: string[]) {
  const { Resolver } = await import('node:dns/promises')
  const resolver = new Resolver({ timeout: FIRST_TRY_TIMEOUT_MS, tries: 2 })
  if (servers.length) resolver.setServers(servers)
  return resolver
}

const toOutcome = (lookup: Promise<string[]>): Promise<boolean | undefined> =>
  lookup.then(
    (addresses) => addresses.length > 0,
    (error) => (isNoRecord(error) ? false : undefined),
  )

const hasAddressInSystem = (name: string) => toOutcome(Bun.dns.lookup(name).then((found) => found.map(String)))

const isNoRecord = ({ code = '' }: { code?: string }) => NO_RECORD_CODES.includes(code.replace(/^DNS_/, ''))
