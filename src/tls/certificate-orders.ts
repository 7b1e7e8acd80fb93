import { config } from '../config'
import { toIsoString } from '../core/clock'
import { hasAddress } from '../core/dns'
import { FairShare } from '../core/fair-share'
import { log, logError } from '../core/log'
import { repeatWork } from '../core/repeated-work'
import { parseList } from '../core/setting-types'
import type { BackgroundWork } from '../jobs/area'
import { type Lease, withLease } from '../jobs/with-lease'
import type { Store } from '../storage/port'
import { registry } from '../tenancy/registry'
import { AuthorityUnavailable, connectAuthority, orderCertificate } from './acme-authority'
import { listCertifiableHosts } from './certifiable-hosts'
import {
  listDueHosts,
  listRecentlyOrderedHosts,
  postpone,
  recordFailure,
  saveCertificate,
  syncCertificates,
} from './certificates'
import { followSuggestedRenewals } from './suggested-renewals'

const CHECK_INTERVAL_MS = 15_000
const MAX_ORDERS_PER_HOUR = 90 // Let's Encrypt takes 300 in three hours
const MAX_ORDERS_PER_HOUR_PER_TENANT = MAX_ORDERS_PER_HOUR / 2

// An order waits for the authority, which takes minutes to see that a host leads elsewhere.
const orderShare = new FairShare({ running: { total: 4, perTenant: 2 }, waiting: {} })

type DueHost = Awaited<ReturnType<typeof listDueHosts>>[number]

let pausedUntil = 0

/** Orders what is due now and then, in one of the servers that share a registry. */
export function startOrdering(): BackgroundWork {
  const order = () =>
    withLease(registry, 'certificates', orderDueCertificates).catch((cause) =>
      logError('CERTIFICATES_NOT_ORDERED', { cause }),
    )
  return { stop: repeatWork(order, CHECK_INTERVAL_MS, 0).stop }
}

/**
 * Orders the certificates of new hosts and of those that expire, as many as an hour may have. Tenants take turns, and
 * one of them gets at most half of an hour's orders.
 */
export async function orderDueCertificates({ signal }: Store & Lease) {
  await syncCertificates()
  await followSuggestedRenewals()
  const dueHosts = await listDueHosts()
  if (!dueHosts.length) return
  const certifiable = await listCertifiableHosts()
  const tenantOf = (host: string) => certifiable.get(host) ?? ''
  const orderedTenants = (await listRecentlyOrderedHosts()).map(tenantOf)
  const mayOrder = (tenant: string) =>
    orderedTenants.length < MAX_ORDERS_PER_HOUR &&
    orderedTenants.filter((other) => other === tenant).length < MAX_ORDERS_PER_HOUR_PER_TENANT
  let client: ReturnType<typeof connectAuthority> | undefined
  const order = async (tenant: string, row: DueHost) => {
    if (signal.aborted || performance.now() < pausedUntil || !mayOrder(tenant)) return
    if (!(await mayLeadHere(row))) return recordFailure(row, 'The DNS has no address for this host yet.', false)
    if (!mayOrder(tenant)) return
    orderedTenants.push(tenant)
    // One connection for all, because the first one creates the account.
    client ??= connectAuthority()
    await orderOrRecord(row, client, signal)
  }
  const shareOf = (row: DueHost) => {
    const tenant = tenantOf(row.host)
    return orderShare.run({ tenant, caller: 'certificates' }, () => order(tenant, row))
  }
  await Promise.all(dueHosts.map(shareOf))
}

/** A server that does not answer says nothing about the host. */
const mayLeadHere = async ({ host }: DueHost) => (await hasAddress(host, parseList(config.ATOLL_DNS_SERVERS))) !== false

async function orderOrRecord(row: DueHost, client: ReturnType<typeof connectAuthority>, signal: AbortSignal) {
  const { host } = row
  try {
    const certificate = await orderCertificate(await client, host, row.chain)
    await saveCertificate(host, certificate)
    log.info({ event: 'certificate-issued', host, expires: toIsoString(certificate.expires) })
  } catch (error) {
    // A server that stops leaves the order to another one.
    if (signal.aborted) return
    const message = error instanceof Error ? error.message : String(error)
    logError('CERTIFICATE_NOT_ISSUED', { host, message, cause: error })
    if (!(error instanceof AuthorityUnavailable)) return recordFailure(row, message, true)
    pausedUntil = performance.now() + error.retryAfterMs
    await postpone(row, message, error.retryAfterMs)
  }
}
