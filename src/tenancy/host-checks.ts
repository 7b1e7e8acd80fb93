import { and, eq, isNotNull, lte } from 'drizzle-orm'
import { DAY, iso, now } from '../core/clock'
import { logSecurity, report } from '../core/log'
import { foundNow, isProven } from './host-proofs'
import { releaseHost } from './hosts'
import { registry } from './registry'
import { hosts } from './tables'

const BETWEEN_CHECKS = DAY
const UNTIL_RELEASE = 3 * DAY // ms that a record may be missing
const LOOK = 3_600_000 // ms between two looks for what is due
const SLICE = 20 // hosts that are checked at once

type Due = typeof hosts.$inferSelect & { checked: string }

/**
 * Looks again at the DNS records of proven hosts that were not looked at for a day, of one tenant or of all. A host whose
 * record has been missing for three days is taken away. A lookup without an answer changes nothing.
 */
export async function checkProvenHosts(tenant?: string) {
  const due = and(isNotNull(hosts.checked), lte(hosts.checked, iso(now() - BETWEEN_CHECKS)))
  const found = await registry.db
    .select()
    .from(hosts)
    .where(tenant === undefined ? due : and(due, eq(hosts.tenant, tenant)))
  const all = found.filter((one): one is Due => one.checked !== null)
  for (let n = 0; n < all.length; n += SLICE) await Promise.all(all.slice(n, n + SLICE).map(checkHost))
}

async function checkHost({ host, tenant, checked, missing }: Due) {
  const proven = await isProven(tenant, host)
  const since = proven ? null : (missing ?? (proven === false ? iso(now()) : null))
  if (proven === false && since && now() - Date.parse(since) >= UNTIL_RELEASE) {
    await releaseHost(tenant, host)
    return logSecurity('host-released', { tenant, host })
  }
  // Another node may have looked meanwhile. Nobody who asks for the host has to know of it.
  await registry.write((tx) =>
    tx
      .update(hosts)
      .set({ ...foundNow(), missing: since })
      .where(and(eq(hosts.host, host), eq(hosts.tenant, tenant), eq(hosts.checked, checked)))
      .run(),
  )
}

/** Checks all proven hosts, each once a day. Returns what stops it. */
export function keepHostsProven(): () => void {
  const look = () => void checkProvenHosts().catch((cause) => report('HOSTS_NOT_CHECKED', { cause }))
  const timer = setInterval(look, LOOK).unref()
  return () => clearInterval(timer)
}
