import { and, asc, eq, inArray, isNotNull, isNull, lte, ne, notInArray } from 'drizzle-orm'
import { config } from '../config'
import { logSecurity } from '../core/log'
import { Problem } from '../core/problem'
import { parseList } from '../core/setting-types'
import { isAddress } from '../core/ssrf-guard'
import type { Db, Tx } from '../storage/port'
import { cached, writeInvalidating } from './cache'
import { stripPort } from './client-connection'
import { filterProvenHosts, proofCheckFields } from './host-proofs'
import { registry } from './registry'
import { hosts, origins } from './tables'

/**
 * Replaces the hosts that the operator has assigned to a tenant. The operator's word prevails: a host that another
 * tenant has only claimed for a website is taken from it.
 * @throws 409 HOST_TAKEN when a host is assigned to another tenant; the host is named
 */
export async function assignHosts(tx: Tx, tenant: string, names: string[]) {
  const wanted = [...new Set(names.map(parseHost))]
  const taken = (await findHosts(tx, wanted)).filter((row) => row.given && row.tenant !== tenant)
  if (taken.length) throw hostGiven(taken)
  await tx.update(hosts).set({ given: false }).where(eq(hosts.tenant, tenant))
  for (const host of wanted) {
    await tx.delete(hosts).where(and(eq(hosts.host, host), ne(hosts.tenant, tenant), eq(hosts.given, false)))
    const ownRow = and(eq(hosts.host, host), eq(hosts.tenant, tenant))
    if (!(await tx.update(hosts).set({ given: true }).where(ownRow).returning().get()))
      await tx.insert(hosts).values({ host, tenant, given: true })
  }
  await deleteUnusedHosts(tx, tenant)
}

/** The websites of one version of a tenant's configuration, by their hosts and origins. */
export type Websites = { hosts: string[]; origins: string[]; version: number }

/**
 * Claims the hosts of a tenant's websites as far as `ATOLL_HOST_CLAIMS` allows, and stores their origins, for the
 * version of the configuration that is about to be written.
 * @throws 409 HOST_TAKEN with `rejectTaken`, where claims are open, when a host is another tenant's; then none is
 * claimed
 */
export async function claimWebsites(
  tenant: string,
  { hosts: names, origins: originNames, version }: Websites,
  rejectTaken = true,
) {
  const isOpen = config.ATOLL_HOST_CLAIMS === 'open'
  const before = await findHosts(registry.db, names)
  const claimable = names.filter((host) => !isReservedHost(host) && needsClaim(before, host, tenant))
  const proven = config.ATOLL_HOST_CLAIMS === 'dns' ? await filterProvenHosts(tenant, claimable) : []
  const savedOrigins = await findOrigins(tenant)
  const isSaved = (origin: string) => savedOrigins.some((saved) => saved.origin === origin && saved.version >= version)
  const isBehind = (row: HostRow) => row.tenant === tenant && row.claimed !== null && row.claimed < version
  // Every write makes all processes look up again which tenant has which host.
  if (
    !(isOpen ? claimable : proven).length &&
    !before.some(isBehind) &&
    originNames.every(isSaved) &&
    !(isOpen && rejectTaken)
  )
    return
  const claimed = await writeInvalidating(registry, 'tenants', async (tx) => {
    const hostRows = await findHosts(tx, names)
    const takenHosts = hostRows.filter((row) => row.tenant !== tenant).map(({ host }) => host)
    if (isOpen && rejectTaken && takenHosts.length) throw hostTaken(takenHosts)
    const newHosts: string[] = []
    for (const host of names) {
      const own = hostRows.find((row) => row.host === host)
      const claims = own?.claimed != null || proven.includes(host) || (isOpen && !isReservedHost(host))
      if (!claims || takenHosts.includes(host)) continue
      if (own?.claimed == null) newHosts.push(host)
      // A late claim does not undo that of a newer version.
      const claim = { claimed: Math.max(version, own?.claimed ?? 0), ...(proven.includes(host) && proofCheckFields()) }
      await tx
        .insert(hosts)
        .values({ host, tenant, given: false, ...claim })
        .onConflictDoUpdate({ target: hosts.host, set: claim })
    }
    await saveOrigins(tx, tenant, originNames, version)
    return newHosts
  })
  for (const host of claimed)
    logSecurity('host-claimed', { tenant, host, proof: proven.includes(host) ? 'dns' : 'none' })
}

/**
 * Tells whether a claim would change anything: the host is free, or the tenant has it without a claim, or its record
 * was missing.
 */
function needsClaim(hostRows: HostRow[], host: string, tenant: string) {
  const row = hostRows.find((other) => other.host === host)
  return !row || (row.tenant === tenant && (row.claimed === null || row.missing !== null))
}

/**
 * Releases the hosts and origins that were claimed up to this version of a configuration, except those of its websites.
 */
export const releaseWebsites = (tenant: string, { hosts: keptHosts, origins: keptOrigins, version }: Websites) =>
  writeInvalidating(registry, 'tenants', async (tx) => {
    const unusedClaims = and(eq(hosts.tenant, tenant), lte(hosts.claimed, version), notInArray(hosts.host, keptHosts))
    await tx.update(hosts).set(NO_CLAIM).where(unusedClaims)
    await deleteUnusedHosts(tx, tenant)
    const unusedOrigins = and(
      eq(origins.tenant, tenant),
      lte(origins.version, version),
      notInArray(origins.origin, keptOrigins),
    )
    await tx.delete(origins).where(unusedOrigins)
  })

/**
 * Releases a host whose proof is gone, unless it is also assigned. Returns whether it had not been checked again
 * meanwhile.
 */
export const releaseHost = (tenant: string, host: string, checked: string) =>
  writeInvalidating(registry, 'tenants', async (tx) => {
    const released = await tx
      .update(hosts)
      .set(NO_CLAIM)
      .where(and(eq(hosts.host, host), eq(hosts.tenant, tenant), eq(hosts.checked, checked)))
      .returning({ host: hosts.host })
    if (released.length) await deleteUnusedHosts(tx, tenant)
    return released.length > 0
  })

const NO_CLAIM = { claimed: null, checked: null, missing: null }

async function saveOrigins(tx: Tx, tenant: string, originNames: string[], version: number) {
  const own = and(eq(origins.tenant, tenant), inArray(origins.origin, originNames))
  const before = await tx.select().from(origins).where(own)
  for (const origin of new Set(originNames)) {
    const newest = Math.max(version, before.find((row) => row.origin === origin)?.version ?? 0)
    await tx
      .insert(origins)
      .values({ origin, tenant, version: newest })
      .onConflictDoUpdate({ target: [origins.origin, origins.tenant], set: { version: newest } })
  }
}

/** Tells whether a website of any tenant has this origin. */
export const isWebsiteOrigin = async (origin: string): Promise<boolean> =>
  !!(await cached(registry, 'tenants', `origin ${origin}`, () =>
    registry.db.select({ tenant: origins.tenant }).from(origins).where(eq(origins.origin, origin)).get(),
  ))

/** Returns the origins of a tenant, with the version of its configuration that names them. */
export const findOrigins = (tenant: string) =>
  registry.db
    .select({ origin: origins.origin, version: origins.version })
    .from(origins)
    .where(eq(origins.tenant, tenant))

type HostRow = typeof hosts.$inferSelect
const findHosts = (db: Db, names: string[]): Promise<HostRow[]> =>
  db.select().from(hosts).where(inArray(hosts.host, names))

/** Returns the owners of these hosts, from the cache where they are known. */
export const findHostOwners = async (names: string[]): Promise<Map<string, string>> =>
  cached(registry, 'tenants', `holders ${names.join(' ')}`, async () => {
    const hostRows = await findHosts(registry.db, names)
    return new Map(hostRows.map(({ host, tenant }) => [host, tenant]))
  })

/** Tells whether a host cannot be claimed, whatever proof there is: only the operator can assign it. */
export const isReservedHost = (host: string) => !isPublicName(host) || isPublicHost(host)

/** Tells whether a host is a name that can be owned: no IP address in any notation, and no name of a single machine. */
export function isPublicName(host: string) {
  const hostname = URL.parse(`http://${host}/`)?.hostname.replace(/\.$/, '') ?? ''
  return hostname.includes('.') && !isAddress(hostname) && !hostname.endsWith('.localhost')
}

/** Tells whether a host is one of the installation's own names. */
export const isPublicHost = (host: string) => parseList(config.ATOLL_PUBLIC_HOSTS.toLowerCase()).includes(host)

/** The operator, who gives hosts, may know which tenants have them. */
const hostGiven = (taken: HostRow[]) => {
  const owners = taken.map(({ host, tenant }) => `${host} already belongs to the tenant "${tenant}".`).join(' ')
  return new Problem(409, 'HOST_TAKEN', `${owners} Remove it there first.`, {
    details: { hosts: taken.map(({ host }) => host) },
  })
}

const hostTaken = (taken: string[]) =>
  new Problem(
    409,
    'HOST_TAKEN',
    `${taken.join(', ')} already belongs to another tenant. Ask the operator of this installation.`,
    { details: { hosts: taken } },
  )

/** Returns the hosts that a tenant has claimed, with the version of its configuration that claimed them. */
export const findClaimedHosts = (tenant: string) =>
  registry.db
    .select({ host: hosts.host, version: hosts.claimed })
    .from(hosts)
    .where(and(eq(hosts.tenant, tenant), isNotNull(hosts.claimed)))

/** Returns the hosts that the operator has assigned to a tenant, sorted. */
export const listAssignedHosts = async (tenant: string): Promise<string[]> => {
  const isAssigned = and(eq(hosts.tenant, tenant), eq(hosts.given, true))
  const rows = await registry.db.select({ host: hosts.host }).from(hosts).where(isAssigned).orderBy(asc(hosts.host))
  return rows.map(({ host }) => host)
}

const deleteUnusedHosts = (tx: Tx, tenant: string) =>
  tx.delete(hosts).where(and(eq(hosts.tenant, tenant), eq(hosts.given, false), isNull(hosts.claimed)))

function parseHost(text: string): string {
  const host = stripPort(text.trim().toLowerCase())
  if (!/^(\[[0-9a-f:.]+\]|[a-z0-9._-]{1,253})$/.test(host))
    throw new Problem(
      400,
      'INVALID_INPUT',
      `"${text}" is not a valid host. Use a name such as app.example.com, without a path.`,
    )
  return host
}
