import { readHistories } from '../../blueprints/history'
import { DAY_MS, now } from '../../core/clock'
import { type Lease, withLease } from '../../jobs/with-lease'
import type { Tenant } from '../../tenancy/tenants'
import { REMOVED } from './version'
import { forgetBefore } from './version-log'

const VERSIONS_PER_READ = 2_000 // versions of one statement, more than an entity can have
const VERSIONS_PER_WRITE = 500 // versions that one write removes

/** Removes, once a day, the versions that are too old or too many, and those of histories that have ended. */
export const removeOldVersions = (tenant: Tenant & Lease) =>
  withLease(tenant, 'entity versions', removeExpired, { cooldownMs: DAY_MS })

/** @see removeOldVersions */
export async function removeExpired(tenant: Tenant & Lease) {
  const histories = new Map([...(await readHistories(tenant.db)).values()].map((history) => [history.number, history]))
  const next = 'select min(history) from entity_versions where history > ?'
  for (let number = -1; !tenant.signal.aborted; ) {
    const [row] = await tenant.db.query(next, [number])
    if (row?.[0] === null || row?.[0] === undefined) return
    number = Number(row[0])
    const history = histories.get(number)
    if (history) await trimHistory(tenant, history)
    // One that was switched on meanwhile is looked at tomorrow.
    else if (!(await isInUse(tenant, number))) await removeHistory(tenant, number)
  }
}

const isInUse = async ({ db }: Tenant, number: number) =>
  (await db.query('select 1 from blueprints where history_number = ?', [number])).length > 0

async function removeHistory({ db, write, signal }: Tenant & Lease, history: number) {
  const select = 'select identifier, number from entity_versions where history = ? order by identifier, number limit ?'
  while (!signal.aborted) {
    const rows = await db.query(select, [history, VERSIONS_PER_WRITE])
    if (!rows.length) return
    const remove = 'delete from entity_versions where history = ? and identifier = ? and number = ?'
    const keys = rows.map((row) => [history, ...row])
    await write((tx) => tx.executeMany(remove, keys), { background: true })
  }
}

type ListedVersion = { identifier: string; number: number; at: number; action: number; hasFormer: boolean }

/** Removes what is too old, or too much, of a history that is in use. */
async function trimHistory(
  { db, write, signal }: Tenant & Lease,
  { number: history, versions, days }: { number: number; versions: number; days: number },
) {
  const cutoff = now() - days * DAY_MS
  const select = `select identifier, number, at, action, former is not null from entity_versions
    where history = ? and identifier > ? order by identifier, number limit ?`
  for (let after = ''; !signal.aborted; ) {
    const rows = (await db.query(select, [history, after, VERSIONS_PER_READ])).map(
      ([identifier, number, at, action, hasFormer]): ListedVersion => ({
        identifier: identifier as string,
        ...{ number: Number(number), at: Number(at), action: Number(action), hasFormer: !!hasFormer },
      }),
    )
    const groups = [...Map.groupBy(rows, ({ identifier }) => identifier)]
    // The last entity may have further versions.
    const isLast = rows.length < VERSIONS_PER_READ
    const complete = isLast || groups.length === 1 ? groups : groups.slice(0, -1)
    for (const [identifier, group] of complete) {
      after = identifier
      const oldest = findOldest(group, versions, cutoff)
      if (oldest !== undefined) await write((tx) => forgetBefore(tx, history, identifier, oldest), { background: true })
    }
    if (isLast) return
  }
}

/**
 * Returns the number of the version that is to be the oldest of an entity, or undefined when nothing is to be removed.
 * What an entity was at the beginning of the time that is kept stays known.
 */
function findOldest(group: ListedVersion[], versions: number, cutoff: number): number | undefined {
  const last = group.at(-1)!
  if (last.action === REMOVED && last.at < cutoff) return last.number + 1
  const latestOld = group.findLastIndex(({ at }) => at < cutoff)
  const from = Math.max(latestOld, group.length - versions, 0)
  const oldest = group[from]!
  return from > 0 || (latestOld === 0 && oldest.hasFormer) ? oldest.number : undefined
}
