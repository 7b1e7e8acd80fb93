import { and, eq, isNotNull, lte } from 'drizzle-orm'
import { toChunks } from '../core/chunks'
import { DAY_MS, HOUR_MS, now, toIsoString } from '../core/clock'
import { logError, logSecurity } from '../core/log'
import { repeatWork } from '../core/repeated-work'
import { isHostProven, proofCheckFields } from './host-proofs'
import { releaseHost } from './hosts'
import { registry } from './registry'
import { hosts } from './tables'

const HOST_CHECK_INTERVAL_MS = DAY_MS
const HOST_RELEASE_DELAY_MS = 3 * DAY_MS // how long a record may be missing
const DUE_CHECK_INTERVAL_MS = HOUR_MS // between two searches for due hosts
const PARALLEL_HOST_CHECKS = 20

type DueHost = typeof hosts.$inferSelect & { checked: string }

/**
 * Checks the DNS records of proven hosts whose last check was a day ago, of one tenant or of all. A host whose record
 * has been missing for three days is released. After a lookup without an answer the host stays as it is for another day.
 */
export async function checkProvenHosts(tenant?: string) {
  const isDue = and(isNotNull(hosts.checked), lte(hosts.checked, toIsoString(now() - HOST_CHECK_INTERVAL_MS)))
  const rows = await registry.db
    .select()
    .from(hosts)
    .where(tenant === undefined ? isDue : and(isDue, eq(hosts.tenant, tenant)))
  const dueHosts = rows.filter((row): row is DueHost => row.checked !== null)
  for (const batch of toChunks(dueHosts, PARALLEL_HOST_CHECKS)) await Promise.all(batch.map(checkHost))
}

async function checkHost({ host, tenant, checked, missing }: DueHost) {
  const proven = await isHostProven(tenant, host)
  const missingSince = proven ? null : (missing ?? (proven === false ? toIsoString(now()) : null))
  if (proven === false && missingSince && now() - Date.parse(missingSince) >= HOST_RELEASE_DELAY_MS) {
    if (await releaseHost(tenant, host, checked)) logSecurity('host-released', { tenant, host })
    return
  }
  // Another node may have checked the host meanwhile. No cache depends on this, so none is invalidated.
  await registry.write((tx) =>
    tx
      .update(hosts)
      .set({ ...proofCheckFields(), missing: missingSince })
      .where(and(eq(hosts.host, host), eq(hosts.tenant, tenant), eq(hosts.checked, checked)))
      .run(),
  )
}

/** Checks all proven hosts, each once a day. Returns a function that stops the checks. */
export function startHostChecks(): () => void {
  const checkAll = () => checkProvenHosts().catch((cause) => logError('HOSTS_NOT_CHECKED', { cause }))
  return repeatWork(checkAll, DUE_CHECK_INTERVAL_MS).stop
}
