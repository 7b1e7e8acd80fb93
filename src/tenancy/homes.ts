import { and, eq } from 'drizzle-orm'
import { iso, now } from '../core/clock'
import { Problem } from '../core/problem'
import { Busy, Moved } from '../storage/errors'
import type { Place, Tx } from '../storage/port'
import { changing } from './memory'
import { registry } from './registry'
import { remains, tenants } from './tables'

/** A tenant as the registry has it. `home` is `cluster/bucket` in PostgreSQL, empty for a file. */
export type Entry = { id: string; uid: string; status: 'active' | 'suspended'; home: string; moved: string | null }

/** Where the storage finds a tenant's data. */
export function placeOf({ id, uid, home }: Pick<Entry, 'id' | 'uid' | 'home'>): Place {
  const [cluster, bucket] = home.split('/')
  return { tenant: id, file: `${id}/data.db`, identity: uid, ...(bucket && { cluster, bucket }) }
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
    if (!(error instanceof Problem) || error.code !== 'TENANT_NOT_FOUND') return error
    // Its old home may be removed already, while a request still goes there.
    const { uid, home, moved } = entry
    const there = await registry.db.select().from(tenants).where(eq(tenants.uid, uid)).get()
    return there && (there.home !== home || there.moved !== moved) ? new Busy(error) : error
  }
