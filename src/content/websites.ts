import { and, eq } from 'drizzle-orm'
import { isLoopback, originOf } from '../accounts/origins'
import { configurations } from '../accounts/settings/tables'
import { config } from '../config'
import { iso, now } from '../core/clock'
import { withoutPort } from '../tenancy/caller'
import { proofOf } from '../tenancy/host-proofs'
import {
  claimedHosts,
  claimWebsites,
  holdersOf,
  isPublicHost,
  isPublicName,
  notedOrigins,
  releaseWebsites,
  type Websites,
} from '../tenancy/hosts'
import { changing } from '../tenancy/memory'
import { type Tenant, unmappedTenant } from '../tenancy/tenants'
import type { WebsiteHost } from './shapes'

/** The key of the settings of which everybody needs some: they are always there. */
export const APP = 'app-configuration'

type Row = typeof configurations.$inferSelect
type State = Pick<Row, 'version' | 'metadata'>

/** A configuration of the server's as it is before anybody has written it. */
export const untouched = (key: string, version: number): Row => ({
  ...{ _id: Bun.randomUUIDv7(), key, public: key === APP, kind: '', description: '', version, metadata: {} },
  ...{ created: iso(now()), updated: iso(now()) },
})

/** The hosts and origins of the websites that a configuration names. At this machine's own hosts nobody answers for it. */
export function websitesOf({ metadata, version }: State): Websites {
  const { websiteUrls } = metadata
  const origins = (Array.isArray(websiteUrls) ? websiteUrls : []).flatMap((url) => originOf(`${url}`) ?? [])
  const hosts = origins.map((origin) => withoutPort(new URL(origin).hostname))
  return { version, origins: [...new Set(origins)], hosts: [...new Set(hosts)].filter((host) => !isLoopback(host)) }
}

/**
 * Writes a configuration whose websites have changed. The registry is in another database, so their hosts are claimed
 * before and given back after the write: whenever this is interrupted, the registry has too many, never too few, and
 * `settleHosts` finds them. @throws 409 HOST_TAKEN where claims are open, and nothing is changed
 */
export async function withHosts({ tenant }: Tenant, state: State, write: () => Promise<boolean>) {
  const websites = websitesOf(state)
  await claimWebsites(tenant, websites)
  const written = await write()
  if (written) await releaseWebsites(tenant, websites).catch(() => {})
  return written
}

/** Whether a tenant answers at the hosts of its websites and, where it does not, what helps. */
export async function hostStates({ tenant }: Tenant, metadata: Row['metadata']): Promise<WebsiteHost[]> {
  const { hosts } = websitesOf({ metadata, version: 0 })
  if (!hosts.length) return []
  const [holders, unmapped] = await Promise.all([holdersOf(hosts), unmappedTenant()])
  return hosts.map((host) => {
    const holder = holders.get(host)
    if ((holder ?? unmapped) === tenant) return { host, state: 'served' }
    if (holder || isPublicHost(host)) return { host, state: 'taken', message: TAKEN }
    if (!isPublicName(host)) return { host, state: 'unproven', message: ONLY_GIVEN }
    if (config.ATOLL_HOST_CLAIMS !== 'dns') return { host, state: 'unproven', message: ASK_OPERATOR }
    const record = proofOf(tenant, host)
    const message = `Create the DNS record ${record.name} of the type TXT with the value ${record.value}, then save this configuration again.`
    return { host, state: 'unproven', message, record }
  })
}

const TAKEN = 'Another tenant of this installation answers at this host. Ask the operator for it.'
const ONLY_GIVEN = 'Only the operator can give a tenant an address, or a name without a dot.'
const ASK_OPERATOR = 'Ask the operator of this installation to give this host to the tenant (atoll tenant hosts).'

/** Makes the registry agree with a tenant's configuration, whatever was interrupted before. */
export async function settleHosts(tenant: Tenant) {
  const state = await stateOf(tenant)
  const { hosts, origins } = websitesOf(state)
  const [held, noted] = await Promise.all([claimedHosts(tenant.tenant), notedOrigins(tenant.tenant)])
  const extra = [
    ...held.filter(({ host }) => !hosts.includes(host)),
    ...noted.filter(({ origin }) => !origins.includes(origin)),
  ]
  const newest = Math.max(state.version, ...extra.map((one) => one.version ?? 0))
  // A claim for a version that is still to come may be under way. It is begun anew when that version is taken from it.
  if (newest > state.version && !(await raise(tenant, state.version, newest))) return
  const websites = { hosts, origins, version: newest }
  await claimWebsites(tenant.tenant, websites, false)
  if (extra.length) await releaseWebsites(tenant.tenant, websites)
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
