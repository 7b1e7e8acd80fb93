import { readHistories } from '../../blueprints/history'
import { DAY_MS, now } from '../../core/clock'
import { type Lease, withLease } from '../../jobs/with-lease'
import type { Tenant } from '../../tenancy/tenants'
import { REMOVED } from './version'
import { forgetBefore, removeVersions } from './version-log'

const VERSIONS_PER_READ = 500 // versions of one statement, and of one write

/** Removes, once a day, the versions that are too old, and those of histories that have ended. */
export const removeOldVersions = (tenant: Tenant & Lease) =>
  withLease(tenant, 'entity versions', removeExpired, { cooldownMs: DAY_MS })

/** @see removeOldVersions */
export async function removeExpired(tenant: Tenant & Lease) {
  const { db, write, signal } = tenant
  const select = `select seq, history, at, action, previous, former is not null from entity_versions
    where seq > ? order by seq limit ?`
  for (let after = 0; !signal.aborted; ) {
    // A history that was switched on meanwhile has no version among those that were read before.
    const rows = (await db.query(select, [after, VERSIONS_PER_READ])) as VersionRow[]
    if (!rows.length) return
    after = rows.at(-1)![0]
    const { removed, oldest } = findExpired(rows, await readCutoffs(tenant))
    if (!removed.length && !oldest.length) continue
    await write((tx) => Promise.all([removeVersions(tx, removed), forgetBefore(tx, oldest)]), { background: true })
  }
}

type VersionRow = [seq: number, history: number, at: number, action: number, previous: number | null, former: unknown]

/** Returns the times by the numbers of the histories in use. What was before a time is too old. */
async function readCutoffs({ db }: Tenant): Promise<Map<number, number>> {
  const time = now()
  return new Map([...(await readHistories(db)).values()].map(({ number, days }) => [number, time - days * DAY_MS]))
}

/**
 * Returns the versions to be removed, and those to become the oldest of their entities. A version that is too old needs
 * none before it; it stays itself as long as none after it is too old, so that what an entity was at the beginning of the
 * time that is kept stays known.
 */
function findExpired(rows: VersionRow[], cutoffs: Map<number, number>) {
  const removed = new Set<number>()
  const oldest: number[] = []
  for (const [seq, history, at, action, previous, former] of rows) {
    const cutoff = cutoffs.get(history)
    const isOld = cutoff === undefined || at < cutoff
    if (!isOld) continue
    if (previous !== null) removed.add(previous)
    if (cutoff === undefined || action === REMOVED) removed.add(seq)
    else if (previous !== null || former) oldest.push(seq)
  }
  return { removed: [...removed], oldest: oldest.filter((seq) => !removed.has(seq)) }
}
