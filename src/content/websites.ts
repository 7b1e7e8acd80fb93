import { and, eq } from 'drizzle-orm'
import { isLoopback, originOf } from '../accounts/origins'
import { configurations } from '../accounts/settings/tables'
import { iso, now } from '../core/clock'
import { Problem } from '../core/problem'
import { withoutPort } from '../tenancy/caller'
import { claimedHosts, claimHosts, releaseHosts } from '../tenancy/hosts'
import { changing } from '../tenancy/memory'
import type { Tenant } from '../tenancy/tenants'

/** The key of the settings of which everybody needs some: they are always there. */
export const APP = 'app-configuration'

type Row = typeof configurations.$inferSelect
type State = Pick<Row, 'version' | 'metadata'>

/** A configuration of the server's as it is before anybody has written it. */
export const untouched = (key: string, version: number): Row => ({
  ...{ _id: Bun.randomUUIDv7(), key, public: key === APP, kind: '', description: '', version, metadata: {} },
  ...{ created: iso(now()), updated: iso(now()) },
})

/** The hosts of the websites that a configuration names. This machine's own are everybody's, so nobody answers there. */
export function hostsOf({ websiteUrls }: Row['metadata']): string[] {
  const urls = Array.isArray(websiteUrls) ? websiteUrls : []
  const hosts = urls.map((url) => withoutPort(new URL(originOf(`${url}`) ?? 'http://localhost').hostname))
  return [...new Set(hosts)].filter((host) => !isLoopback(host))
}

/**
 * Writes a configuration whose websites have changed. The registry is in another database, so their hosts are claimed
 * before and given back after the write: whenever this is interrupted, the registry has too many, never too few, and
 * `settleHosts` finds them. @throws 409 HOST_TAKEN, and nothing is changed
 */
export async function withHosts({ tenant }: Tenant, { version, metadata }: State, write: () => Promise<boolean>) {
  const hosts = hostsOf(metadata)
  await claimHosts(tenant, hosts, version)
  const written = await write()
  if (written) await releaseHosts(tenant, hosts, version).catch(() => {})
  return written
}

/** Makes the registry agree with a tenant's configuration, whatever was interrupted before. */
export async function settleHosts(tenant: Tenant) {
  const { metadata, version } = await stateOf(tenant)
  const [wanted, held] = [hostsOf(metadata), await claimedHosts(tenant.tenant)]
  const extra = held.filter(({ host }) => !wanted.includes(host))
  const newest = Math.max(version, ...extra.map((one) => one.version ?? 0))
  // A claim for a version that is still to come may be under way. It is begun anew when that version is taken from it.
  if (newest > version && !(await raise(tenant, version, newest))) return
  for (const host of wanted)
    if (!held.some((one) => one.host === host)) await claimHosts(tenant.tenant, [host], newest).catch(unlessTaken)
  if (extra.length) await releaseHosts(tenant.tenant, wanted, newest)
}

async function stateOf({ db }: Tenant): Promise<State> {
  const { metadata, version } = configurations
  const row = await db.select({ metadata, version }).from(configurations).where(isApp).get()
  return row ?? { metadata: {}, version: 0 }
}

const isApp = eq(configurations.key, APP)

const raise = (tenant: Tenant, from: number, to: number) =>
  changing(tenant, 'configurations', async (tx) => {
    const same = and(isApp, eq(configurations.version, from))
    const raised = from
      ? tx.update(configurations).set({ version: to }).where(same).returning()
      : tx.insert(configurations).values(untouched(APP, to)).onConflictDoNothing().returning()
    return !!(await raised.get())
  })

/** Who runs the installation may have given it to another tenant. */
function unlessTaken(error: unknown) {
  if (!(error instanceof Problem) || error.code !== 'HOST_TAKEN') throw error
}
