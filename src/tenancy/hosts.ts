import { and, eq, inArray, isNotNull, isNull, lte, ne, notInArray } from 'drizzle-orm'
import { config, itemsOf } from '../config'
import { isAddress } from '../core/addresses'
import { logSecurity } from '../core/log'
import { Problem } from '../core/problem'
import type { Db, Tx } from '../storage/port'
import { withoutPort } from './caller'
import { foundNow, provenHosts } from './host-proofs'
import { changing, recall } from './memory'
import { registry } from './registry'
import { hosts, origins } from './tables'

/**
 * Has these hosts be what the tenant was given by who runs the installation, whose word prevails: what another tenant has
 * only claimed for a website is taken from it. @throws Conflict for what another tenant was given
 */
export async function giveHosts(tx: Tx, tenant: string, names: string[]) {
  await tx.update(hosts).set({ given: false }).where(eq(hosts.tenant, tenant))
  for (const host of new Set(names.map(hostName))) {
    await tx.delete(hosts).where(and(eq(hosts.host, host), ne(hosts.tenant, tenant), eq(hosts.given, false)))
    const own = and(eq(hosts.host, host), eq(hosts.tenant, tenant))
    if (!(await tx.update(hosts).set({ given: true }).where(own).returning().get()))
      await tx.insert(hosts).values({ host, tenant, given: true })
  }
  await dropUnused(tx, tenant)
}

/** The websites that a version of a tenant's configuration names, by their hosts and origins. */
export type Websites = { hosts: string[]; origins: string[]; version: number }

/**
 * Claims the hosts of a tenant's websites as far as `ATOLL_HOST_CLAIMS` lets it, and notes their origins, for the version
 * of its configuration that is about to be written. With `refuseTaken`, where claims are open:
 * @throws 409 HOST_TAKEN when one of them is another tenant's; then none is claimed.
 */
export async function claimWebsites(
  tenant: string,
  { hosts: names, origins: named, version }: Websites,
  refuseTaken = true,
) {
  const open = config.ATOLL_HOST_CLAIMS === 'open'
  const before = await heldAmong(registry.db, names)
  const wanted = names.filter((host) => !isReserved(host) && needsClaim(before, host, tenant))
  const proven = config.ATOLL_HOST_CLAIMS === 'dns' ? await provenHosts(tenant, wanted) : []
  const noted = await notedOrigins(tenant)
  const isNoted = (origin: string) => noted.some((one) => one.origin === origin && one.version >= version)
  const isBehind = (one: Held) => one.tenant === tenant && one.claimed !== null && one.claimed < version
  // Every write makes all processes look again which tenant answers where.
  if (!(open ? wanted : proven).length && !before.some(isBehind) && named.every(isNoted) && !(open && refuseTaken))
    return
  const claimed = await changing(registry, 'tenants', async (tx) => {
    const held = await heldAmong(tx, names)
    const taken = held.filter((one) => one.tenant !== tenant).map(({ host }) => host)
    if (open && refuseTaken && taken.length) throw hostTaken(taken)
    const fresh: string[] = []
    for (const host of names) {
      const own = held.find((one) => one.host === host)
      const claims = own?.claimed != null || proven.includes(host) || (open && !isReserved(host))
      if (!claims || taken.includes(host)) continue
      if (own?.claimed == null) fresh.push(host)
      // Who comes late does not undo the claim of a newer version.
      const claim = { claimed: Math.max(version, own?.claimed ?? 0), ...(proven.includes(host) && foundNow()) }
      await tx
        .insert(hosts)
        .values({ host, tenant, given: false, ...claim })
        .onConflictDoUpdate({ target: hosts.host, set: claim })
    }
    await noteOrigins(tx, tenant, named, version)
    return fresh
  })
  for (const host of claimed)
    logSecurity('host-claimed', { tenant, host, proof: proven.includes(host) ? 'dns' : 'none' })
}

/** Whether a claim would change anything: nobody has the host, or the tenant has it without one, or its record was missing. */
function needsClaim(held: Held[], host: string, tenant: string) {
  const one = held.find((other) => other.host === host)
  return !one || (one.tenant === tenant && (one.claimed === null || one.missing !== null))
}

/** Gives back what was claimed up to this version of a configuration, but for the websites that it has. */
export const releaseWebsites = (tenant: string, { hosts: kept, origins: named, version }: Websites) =>
  changing(registry, 'tenants', async (tx) => {
    const over = and(eq(hosts.tenant, tenant), lte(hosts.claimed, version), notInArray(hosts.host, kept))
    await tx.update(hosts).set(unclaimed).where(over)
    await dropUnused(tx, tenant)
    const old = and(eq(origins.tenant, tenant), lte(origins.version, version), notInArray(origins.origin, named))
    await tx.delete(origins).where(old)
  })

/** Takes a host away whose proof is gone, unless the tenant was given it as well. */
export const releaseHost = (tenant: string, host: string) =>
  changing(registry, 'tenants', async (tx) => {
    await tx
      .update(hosts)
      .set(unclaimed)
      .where(and(eq(hosts.host, host), eq(hosts.tenant, tenant)))
    await dropUnused(tx, tenant)
  })

const unclaimed = { claimed: null, checked: null, missing: null }

async function noteOrigins(tx: Tx, tenant: string, named: string[], version: number) {
  const own = and(eq(origins.tenant, tenant), inArray(origins.origin, named))
  const before = await tx.select().from(origins).where(own)
  for (const origin of new Set(named)) {
    const newest = Math.max(version, before.find((one) => one.origin === origin)?.version ?? 0)
    await tx
      .insert(origins)
      .values({ origin, tenant, version: newest })
      .onConflictDoUpdate({ target: [origins.origin, origins.tenant], set: { version: newest } })
  }
}

/** Whether a website of any tenant has this origin. */
export const isNamedOrigin = async (origin: string): Promise<boolean> =>
  !!(await recall(registry, 'tenants', `origin ${origin}`, () =>
    registry.db.select({ tenant: origins.tenant }).from(origins).where(eq(origins.origin, origin)).get(),
  ))

/** The origins that were noted for a tenant, with the version of its configuration for which they were. */
export const notedOrigins = (tenant: string) =>
  registry.db
    .select({ origin: origins.origin, version: origins.version })
    .from(origins)
    .where(eq(origins.tenant, tenant))

type Held = typeof hosts.$inferSelect
const heldAmong = (db: Db, names: string[]): Promise<Held[]> =>
  db.select().from(hosts).where(inArray(hosts.host, names))

/** Which of these hosts which tenant has, from memory where it is known. */
export const holdersOf = async (names: string[]): Promise<Map<string, string>> =>
  recall(registry, 'tenants', `holders ${names.join(' ')}`, async () => {
    const held = await heldAmong(registry.db, names)
    return new Map(held.map(({ host, tenant }) => [host, tenant]))
  })

/** Whether nobody can claim this host, whatever proof there is: only the operator gives it. */
export const isReserved = (host: string) => !isPublicName(host) || isPublicHost(host)

/** Whether a host is a name that can be owned: no address however it is written, and no name of a single machine. */
export function isPublicName(host: string) {
  const hostname = URL.parse(`http://${host}/`)?.hostname.replace(/\.$/, '') ?? ''
  return hostname.includes('.') && !isAddress(hostname) && !hostname.endsWith('.localhost')
}

/** Whether a host is one of the installation's own names. */
export const isPublicHost = (host: string) => itemsOf(config.ATOLL_PUBLIC_HOSTS.toLowerCase()).includes(host)

const hostTaken = (taken: string[]) =>
  new Problem(
    409,
    'HOST_TAKEN',
    `Another tenant answers at ${taken.join(', ')}. Ask the operator of this installation.`,
    { details: { hosts: taken } },
  )

/** The hosts that a tenant has claimed, with the version of its configuration for which it did. */
export const claimedHosts = (tenant: string) =>
  registry.db
    .select({ host: hosts.host, version: hosts.claimed })
    .from(hosts)
    .where(and(eq(hosts.tenant, tenant), isNotNull(hosts.claimed)))

const dropUnused = (tx: Tx, tenant: string) =>
  tx.delete(hosts).where(and(eq(hosts.tenant, tenant), eq(hosts.given, false), isNull(hosts.claimed)))

function hostName(text: string): string {
  const host = withoutPort(text.trim().toLowerCase())
  if (!/^(\[[0-9a-f:.]+\]|[a-z0-9._-]{1,253})$/.test(host))
    throw new Problem(400, 'INVALID_INPUT', `"${text}" is no host: give a name such as app.example.com, without path.`)
  return host
}
