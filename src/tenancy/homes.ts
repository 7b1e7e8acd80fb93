import { and, eq } from 'drizzle-orm'
import { iso, now } from '../core/clock'
import { report } from '../core/log'
import { notFound, Problem } from '../core/problem'
import { Busy, Damaged, DiskFault, Moved, StorageFull } from '../storage/errors'
import type { Place, Tx } from '../storage/port'
import { changing } from './memory'
import { registry } from './registry'
import { remains, tenants } from './tables'

/** A tenant as the registry has it. `home` is `cluster/bucket` in PostgreSQL, empty for a file. */
export type Entry = {
  id: string
  uid: string
  status: 'active' | 'suspended'
  home: string
  moved: string | null
  /** When its database was made. */
  made: string | null
}

/** Where the storage finds a tenant's data. */
export function placeOf({ id, uid, home, made }: Pick<Entry, 'id' | 'uid' | 'home' | 'made'>): Place {
  const [cluster, bucket] = home.split('/')
  return { tenant: id, file: `${id}/data.db`, identity: uid, exists: !!made, ...(bucket && { cluster, bucket }) }
}

/**
 * Has a tenant served from another home from now on, unless that was done already; false when there is no such tenant any
 * more. All processes hear of it within a second.
 */
export const rehome = ({ uid, home: from }: Entry, home: string): Promise<boolean> =>
  changing(registry, 'tenants', async (tx) => {
    const found = await tx.select().from(tenants).where(eq(tenants.uid, uid)).get()
    if (found?.home !== from) return !!found
    await tx
      .update(tenants)
      .set({ home, moved: iso(now()) })
      .where(eq(tenants.uid, uid))
    await tx.delete(remains).where(and(eq(remains.uid, uid), eq(remains.home, home)))
    await leaveRemains(tx, uid, from)
    return true
  })

/** Notes that rows are left in a bucket, for who removes them later. Files need no note. */
export async function leaveRemains(tx: Tx, uid: string, home: string) {
  if (home)
    await tx
      .insert(remains)
      .values({ uid, home, since: iso(now()) })
      .onConflictDoNothing()
}

/**
 * What to tell who asked for a tenant where it isn't any more. The mark that it left there is the moment of its move: had
 * the process that moved it no time for the registry, this does that.
 */
export const elsewhere =
  (entry: Entry) =>
  async (error: unknown): Promise<unknown> => {
    if (error instanceof Moved) await rehome(entry, error.home).catch(() => {})
    if (error instanceof DiskFault) return failed(entry, error)
    if (error instanceof StorageFull) reportRarely('STORAGE_FULL', entry.id, { cause: error })
    const isGone = error instanceof Problem && error.code === 'TENANT_NOT_FOUND'
    if (!isGone && !(error instanceof Damaged)) return error
    // Its old home may be removed already, while a request still goes there.
    const { uid, home, moved } = entry
    const there = await registry.db.select().from(tenants).where(eq(tenants.uid, uid)).get()
    if (there && (there.home !== home || there.moved !== moved)) return new Busy(error)
    return there ? damaged(entry, error) : notFound('tenant')
  }

/** The tenant alone can't be served until somebody puts its data right. */
function damaged({ id }: Entry, cause: Error): Problem {
  reportRarely('TENANT_DAMAGED', id, { reason: cause.message, cause })
  const message = 'The data of this tenant is missing or damaged. The operator of this server has to restore it.'
  return new Problem(503, 'TENANT_DAMAGED', message, { cause, headers: { 'retry-after': '60' } })
}

function failed({ id }: Entry, cause: DiskFault): Problem {
  reportRarely('STORAGE_FAILED', id, { cause })
  const message = 'The storage of this server failed. It is opened again: try again in a moment.'
  return new Problem(503, 'STORAGE_FAILED', message, { cause, headers: { 'retry-after': '1' } })
}

const REPORT = 60_000 // ms between two lines about the same
const reported = new Map<string, number>()

/** Every request of a tenant may meet the same failure. */
function reportRarely(what: string, tenant: string, more: { reason?: string; cause: Error }) {
  const [key, time] = [`${what} ${tenant}`, performance.now()]
  if (time < (reported.get(key) ?? Number.NEGATIVE_INFINITY) + REPORT) return
  if (reported.size > 1_000) reported.clear()
  reported.set(key, time)
  report(what, { tenant, ...more })
}
