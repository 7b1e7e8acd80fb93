import { and, asc, eq, inArray, isNotNull, isNull, lte, ne, notInArray } from 'drizzle-orm'
import { Problem } from '../core/problem'
import type { Tx } from '../storage/port'
import { withoutPort } from './caller'
import { changing } from './memory'
import { registry } from './registry'
import { hosts } from './tables'

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

/**
 * Claims the hosts of a tenant's websites, for the version of its configuration that is about to be written.
 * @throws 409 HOST_TAKEN when one of them is another tenant's; then none is claimed.
 */
export const claimHosts = (tenant: string, names: string[], version: number) =>
  changing(registry, 'tenants', async (tx) => {
    const held = await tx.select().from(hosts).where(inArray(hosts.host, names))
    const taken = held.filter((one) => one.tenant !== tenant).map(({ host }) => host)
    if (taken.length) {
      const message = `Another tenant answers at ${taken.join(', ')}. Ask who runs this installation.`
      throw new Problem(409, 'HOST_TAKEN', message, { details: { hosts: taken } })
    }
    for (const host of names) {
      // Who comes late does not undo the claim of a newer version.
      const claimed = Math.max(version, held.find((one) => one.host === host)?.claimed ?? 0)
      await tx
        .insert(hosts)
        .values({ host, tenant, given: false, claimed })
        .onConflictDoUpdate({ target: hosts.host, set: { claimed } })
    }
  })

/** Gives back what was claimed up to this version of a configuration, but for the hosts that it has. */
export const releaseHosts = (tenant: string, kept: string[], version: number) =>
  changing(registry, 'tenants', async (tx) => {
    const over = and(eq(hosts.tenant, tenant), lte(hosts.claimed, version), notInArray(hosts.host, kept))
    await tx.update(hosts).set({ claimed: null }).where(over)
    await dropUnused(tx, tenant)
  })

/** The hosts that a tenant has claimed, with the version of its configuration for which it did. */
export const claimedHosts = (tenant: string) =>
  registry.db
    .select({ host: hosts.host, version: hosts.claimed })
    .from(hosts)
    .where(and(eq(hosts.tenant, tenant), isNotNull(hosts.claimed)))

/** The hosts that a tenant was given by who runs the installation, sorted. */
export const hostsGivenTo = async (tenant: string): Promise<string[]> => {
  const given = and(eq(hosts.tenant, tenant), eq(hosts.given, true))
  const rows = await registry.db.select({ host: hosts.host }).from(hosts).where(given).orderBy(asc(hosts.host))
  return rows.map(({ host }) => host)
}

const dropUnused = (tx: Tx, tenant: string) =>
  tx.delete(hosts).where(and(eq(hosts.tenant, tenant), eq(hosts.given, false), isNull(hosts.claimed)))

function hostName(text: string): string {
  const host = withoutPort(text.trim().toLowerCase())
  if (!/^(\[[0-9a-f:.]+\]|[a-z0-9._-]{1,253})$/.test(host))
    throw new Problem(400, 'INVALID_INPUT', `"${text}" is no host: give a name such as app.example.com, without path.`)
  return host
}
