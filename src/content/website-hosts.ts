import { and, eq } from 'drizzle-orm'
import { config } from '../config'
import { isLoopbackHost, toOrigin } from '../http/allowed-origins'
import { APP_CONFIGURATION, defaultConfiguration } from '../platform/settings/app-configuration'
import { configurations } from '../platform/settings/tables'
import { writeInvalidating } from '../tenancy/cache'
import { stripPort } from '../tenancy/client-connection'
import { proofRecordOf } from '../tenancy/host-proofs'
import {
  claimWebsites,
  findClaimedHosts,
  findHostOwners,
  findOrigins,
  isPublicHost,
  isPublicName,
  releaseWebsites,
  type Websites,
} from '../tenancy/hosts'
import { getDefaultTenantId, type Tenant } from '../tenancy/tenants'
import type { WebsiteHost } from './shapes'

type Row = typeof configurations.$inferSelect
type ConfigurationState = Pick<Row, 'version' | 'metadata'>

/** Returns the hosts and origins of the websites in a configuration. Loopback hosts are left out of the hosts. */
export function websitesOf({ metadata, version }: ConfigurationState): Websites {
  const { websiteUrls } = metadata
  const origins = (Array.isArray(websiteUrls) ? websiteUrls : []).flatMap((url) => toOrigin(`${url}`) ?? [])
  const hosts = origins.map((origin) => stripPort(new URL(origin).hostname))
  return { version, origins: [...new Set(origins)], hosts: [...new Set(hosts)].filter((host) => !isLoopbackHost(host)) }
}

/**
 * Writes a configuration whose websites have changed. The registry is in another database, so hosts are claimed before
 * the write and released after it: after an interruption the registry has too many hosts, never too few, and
 * `reconcileHosts` releases them.
 * @throws 409 HOST_TAKEN when ATOLL_HOST_CLAIMS is open and another tenant has a host; nothing is changed then
 */
export async function withClaimedHosts({ tenant }: Tenant, state: ConfigurationState, write: () => Promise<boolean>) {
  const websites = websitesOf(state)
  await claimWebsites(tenant, websites)
  const saved = await write()
  if (saved) await releaseWebsites(tenant, websites).catch(() => {}) // housekeeping releases them later
  return saved
}

/** Returns the state of each host of a tenant's websites, and what to do about hosts that are not served. */
export async function listHostStates({ tenant }: Tenant, metadata: Row['metadata']): Promise<WebsiteHost[]> {
  const { hosts } = websitesOf({ metadata, version: 0 })
  if (!hosts.length) return []
  const [holders, answering] = await Promise.all([findHostOwners(hosts), Promise.all(hosts.map(getDefaultTenantId))])
  return hosts.map((host, place) => {
    const holder = holders.get(host)
    if ((holder ?? answering[place]) === tenant) return { host, state: 'served' }
    if (holder || isPublicHost(host)) return { host, state: 'taken', message: TAKEN_MESSAGE }
    if (!isPublicName(host)) return { host, state: 'unproven', message: OPERATOR_ONLY_MESSAGE }
    if (config.ATOLL_HOST_CLAIMS !== 'dns') return { host, state: 'unproven', message: ASK_OPERATOR_MESSAGE }
    const record = proofRecordOf(tenant, host)
    const message = `Create the DNS record ${record.name} of the type TXT with the value ${record.value}, then save this configuration again.`
    return { host, state: 'unproven', message, record }
  })
}

const TAKEN_MESSAGE = 'Another tenant of this installation answers at this host. Ask the operator for it.'
const OPERATOR_ONLY_MESSAGE = 'Only the operator can assign an IP address, or a name without a dot, to a tenant.'
const ASK_OPERATOR_MESSAGE =
  'Ask the operator of this installation to give this host to the tenant (atoll tenant hosts).'

/** Makes the registry agree with a tenant's configuration after an interrupted write. */
export async function reconcileHosts(tenant: Tenant) {
  const state = await readState(tenant)
  const { hosts, origins } = websitesOf(state)
  const [claimed, noted] = await Promise.all([findClaimedHosts(tenant.tenant), findOrigins(tenant.tenant)])
  const surplus = [
    ...claimed.filter(({ host }) => !hosts.includes(host)),
    ...noted.filter(({ origin }) => !origins.includes(origin)),
  ]
  const newest = Math.max(state.version, ...surplus.map((claim) => claim.version ?? 0))
  // A claim for a later version may be under way. When this write takes that version, the other write starts over.
  if (newest > state.version && !(await raiseVersion(tenant, state.version, newest))) return
  const websites = { hosts, origins, version: newest }
  await claimWebsites(tenant.tenant, websites, false)
  if (surplus.length) await releaseWebsites(tenant.tenant, websites)
}

async function readState({ db }: Tenant): Promise<ConfigurationState> {
  const { metadata, version } = configurations
  const row = await db.select({ metadata, version }).from(configurations).where(whereAppConfiguration).get()
  return row ?? { metadata: {}, version: 0 }
}

const whereAppConfiguration = eq(configurations.key, APP_CONFIGURATION)

const raiseVersion = (tenant: Tenant, from: number, to: number) =>
  writeInvalidating(tenant, 'configurations', async (tx) => {
    const atVersion = and(whereAppConfiguration, eq(configurations.version, from))
    const raised = from
      ? tx.update(configurations).set({ version: to }).where(atVersion).returning()
      : tx.insert(configurations).values(defaultConfiguration(APP_CONFIGURATION, to)).onConflictDoNothing().returning()
    return !!(await raised.get())
  })
