import { and, eq, isNotNull, lte } from 'drizzle-orm'
import { toChunks } from '../core/chunks'
import { DAY_MS, now, toIsoString } from '../core/clock'
import { logError, logSecurity } from '../core/log'
import { isHostProven, proofCheckFields } from './host-proofs'
import { releaseHost } from './hosts'
import { registry } from './registry'
import { hosts } from './tables'

const HOST_CHECK_INTERVAL_MS = DAY_MS
const HOST_RELEASE_DELAY_MS = 3 * DAY_MS // ms that a record may be missing
const DUE_CHECK_INTERVAL_MS = 3_600_000 // ms between two looks for what is due
const PARALLEL_HOST_CHECKS = 20 // hosts that are checked at once

type DueHost = typeof hosts.$inferSelect & { checked: string }

/**
 * Looks again at the DNS records of proven hosts that were not looked at for a day, of one tenant or of all. A host whose
 * record has been missing for three days is taken away. A lookup without an answer changes nothing.
 */
export async function checkProvenHosts(tenant?: string) {
  const isDue = and(isNotNull(hosts.checked), lte(hosts.checked, toIsoString(now() - HOST_CHECK_INTERVAL_MS)))
  const rows = await registry.db
    .select()
    .from(hosts)
    .where(tenant === undefined ? isDue : and(isDue, eq(hosts.tenant, tenant)))
  const dueHosts = rows.filter((one): one is DueHost => one.checked !== null)
  for (const batch of toChunks(dueHosts, PARALLEL_HOST_CHECKS)) await Promise.all(batch.map(checkHost))
}

async function checkHost({ host, tenant, checked, missing }: DueHost) {
  const proven = await isHostProven(tenant, host)
  const missingSince = proven ? null : (missing ?? (proven === false ? toIsoString(now()) : null))
  if (proven === false && missingSince && now() - Date.parse(missingSince) >= HOST_RELEASE_DELAY_MS) {
    if (await releaseHost(tenant, host, checked)) logSecurity('host-released', { tenant, host })
    return
  }
  // Another node may have looked meanwhile. Nobody who asks for the host has to know of it.
  await registry.write((tx) =>
    tx
      .update(hosts)
      .set({ ...proofCheckFields(), missing: missingSince })
      .where(and(eq(hosts.host, host), eq(hosts.tenant, tenant), eq(hosts.checked, checked)))
      .run(),
  )
}

/** Checks all proven hosts, each once a day. Returns what stops it. */
export function startHostChecks(): () => void {
  const checkAll = () => void checkProvenHosts().catch((cause) => logError('HOSTS_NOT_CHECKED', { cause }))
  const timer = setInterval(checkAll, DUE_CHECK_INTERVAL_MS).unref()
  return () => clearInterval(timer)
}
