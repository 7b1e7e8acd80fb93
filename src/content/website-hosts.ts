import { and, eq } from 'drizzle-orm'
import { config } from '../config'
import { now, toIsoString } from '../core/clock'
import { isLoopbackHost, toOrigin } from '../http/allowed-origins'
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

/** The key of the settings of which everybody needs some: they are always there. */
export const APP_CONFIGURATION = 'app-configuration'

type Row = typeof configurations.$inferSelect
type ConfigurationState = Pick<Row, 'version' | 'metadata'>

/** A configuration of the server's as it is before anybody has written it. */
export const defaultConfiguration = (key: string, version: number): Row => ({
  ...{
    _id: Bun.randomUUIDv7(),
    key,
    public: key === APP_CONFIGURATION,
    kind: '',
    description: '',
    version,
    metadata: {},
  },
  ...{ created: toIsoString(now()), updated: toIsoString(now()) },
})

/** The hosts and origins of the websites that a configuration names. At this machine's own hosts nobody answers for it. */
export function websitesOf({ metadata, version }: ConfigurationState): Websites {
  const { websiteUrls } = metadata
  const origins = (Array.isArray(websiteUrls) ? websiteUrls : []).flatMap((url) => toOrigin(`${url}`) ?? [])
  const hosts = origins.map((origin) => stripPort(new URL(origin).hostname))
  return { version, origins: [...new Set(origins)], hosts: [...new Set(hosts)].filter((host) => !isLoopbackHost(host)) }
}

/**
 * Writes a configuration whose websites have changed. The registry is in another database, so their hosts are claimed
 * before and given back after the write: whenever this is interrupted, the registry has too many, never too few, and
 * `settleHosts` finds them. @throws 409 HOST_TAKEN where claims are open, and nothing is changed
 */
export async function withClaimedHosts({ tenant }: Tenant, state: ConfigurationState, write: () => Promise<boolean>) {
  const websites = websitesOf(state)
  await claimWebsites(tenant, websites)
  const saved = await write()
  if (saved) await releaseWebsites(tenant, websites).catch(() => {})
  return saved
}

/** Whether a tenant answers at the hosts of its websites and, where it does not, what helps. */
export async function listHostStates({ tenant }: Tenant, metadata: Row['metadata']): Promise<WebsiteHost[]> {
  const { hosts } = websitesOf({ metadata, version: 0 })
  if (!hosts.length) return []
  const [holders, unmapped] = await Promise.all([findHostOwners(hosts), getDefaultTenantId()])
  return hosts.map((host) => {
    const holder = holders.get(host)
    if ((holder ?? unmapped) === tenant) return { host, state: 'served' }
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

/** Makes the registry agree with a tenant's configuration, whatever was interrupted before. */
export async function reconcileHosts(tenant: Tenant) {
  const state = await readState(tenant)
  const { hosts, origins } = websitesOf(state)
  const [claimed, noted] = await Promise.all([findClaimedHosts(tenant.tenant), findOrigins(tenant.tenant)])
  const surplus = [
    ...claimed.filter(({ host }) => !hosts.includes(host)),
    ...noted.filter(({ origin }) => !origins.includes(origin)),
  ]
  const newest = Math.max(state.version, ...surplus.map((one) => one.version ?? 0))
  // A claim for a version that is still to come may be under way. It is begun anew when that version is taken from it.
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
