import { config } from '../config'
import { toChunks } from '../core/chunks'
import { toIsoString } from '../core/clock'
import { hasAddress } from '../core/dns'
import { log, logError } from '../core/log'
import { parseList } from '../core/setting-types'
import type { BackgroundWork } from '../jobs/area'
import { type Lease, withLease } from '../jobs/with-lease'
import type { Store } from '../storage/port'
import { registry } from '../tenancy/registry'
import { AuthorityUnavailable, connectAuthority, orderCertificate } from './acme-authority'
import {
  countRecentOrders,
  listDueHosts,
  postpone,
  recordFailure,
  saveCertificate,
  syncCertificates,
} from './certificates'

const CHECK_INTERVAL_MS = 15_000
const MAX_ORDERS_PER_HOUR = 90 // Let's Encrypt takes 300 in three hours
const PARALLEL_ORDERS = 4

type DueHost = Awaited<ReturnType<typeof listDueHosts>>[number]

let pausedUntil = 0

/** Orders what is due now and then, in one of the servers that share a registry. */
export function startOrdering(): BackgroundWork {
  let timer: Timer | undefined
  let isStopped = false
  const check = async () => {
    await withLease(registry, 'certificates', orderDueCertificates).catch((cause) =>
      logError('CERTIFICATES_NOT_ORDERED', { cause }),
    )
    if (!isStopped) timer = setTimeout(check, CHECK_INTERVAL_MS).unref()
  }
  timer = setTimeout(check, 0).unref()
  return {
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}

/** Orders the certificates of new hosts and of those that expire, as many as an hour may have. */
export async function orderDueCertificates({ signal }: Store & Lease) {
  await syncCertificates()
  const dueHosts = await listDueHosts()
  if (!dueHosts.length) return
  let left = MAX_ORDERS_PER_HOUR - (await countRecentOrders())
  let client: ReturnType<typeof connectAuthority> | undefined
  const order = async (row: DueHost) => {
    if (!(await mayLeadHere(row))) return recordFailure(row, 'The DNS has no address for this host yet.', false)
    if (left-- <= 0) return
    // One connection for all, because the first one creates the account.
    client ??= connectAuthority()
    await orderOrRecord(row, client, signal)
  }
  for (const batch of toChunks(dueHosts, PARALLEL_ORDERS)) {
    if (signal.aborted || left <= 0 || performance.now() < pausedUntil) return
    await Promise.all(batch.map(order))
  }
}

/** A server that does not answer says nothing about the host. */
const mayLeadHere = async ({ host }: DueHost) => (await hasAddress(host, parseList(config.ATOLL_DNS_SERVERS))) !== false

async function orderOrRecord(row: DueHost, client: ReturnType<typeof connectAuthority>, signal: AbortSignal) {
  const { host } = row
  try {
    const certificate = await orderCertificate(await client, host)
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
