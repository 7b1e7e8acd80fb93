import { and, eq } from 'drizzle-orm'
import { BoundedMap } from '../core/bounded-map'
import { now, toIsoString } from '../core/clock'
import { logError } from '../core/log'
import { notFoundProblem, Problem } from '../core/problem'
import { Busy, DatabaseDamaged, DiskFailure, StorageFull, TenantMoved } from '../storage/errors'
import type { DatabaseLocation, Tx } from '../storage/port'
import { writeInvalidating } from './cache'
import { registry } from './registry'
import { remains, tenants } from './tables'

/** A tenant as the registry has it. `home` is `cluster/bucket` in PostgreSQL, empty for a file. */
export type TenantRecord = {
  id: string
  uid: string
  status: 'active' | 'suspended'
  home: string
  moved: string | null
  /** When its database was made. */
  made: string | null
}

/** Where the storage finds a tenant's data. */
export function locationOf({
  id,
  uid,
  home,
  made,
}: Pick<TenantRecord, 'id' | 'uid' | 'home' | 'made'>): DatabaseLocation {
  const [cluster, bucket] = home.split('/')
  return { tenant: id, file: `${id}/data.db`, identity: uid, exists: !!made, ...(bucket && { cluster, bucket }) }
}

/**
 * Has a tenant served from another home from now on, unless that was done already; false when there is no such tenant any
 * more. All processes hear of it within a second.
 */
export const setHome = ({ uid, home: from }: TenantRecord, home: string): Promise<boolean> =>
  writeInvalidating(registry, 'tenants', async (tx) => {
    const current = await tx.select().from(tenants).where(eq(tenants.uid, uid)).get()
    if (current?.home !== from) return !!current
    await tx
      .update(tenants)
      .set({ home, moved: toIsoString(now()) })
      .where(eq(tenants.uid, uid))
    await tx.delete(remains).where(and(eq(remains.uid, uid), eq(remains.home, home)))
    await recordLeftovers(tx, uid, from)
    return true
  })

/** Notes that rows are left in a bucket, for who removes them later. Files need no note. */
export async function recordLeftovers(tx: Tx, uid: string, home: string) {
  if (home)
    await tx
      .insert(remains)
      .values({ uid, home, since: toIsoString(now()) })
      .onConflictDoNothing()
}

/**
 * What to tell who asked for a tenant where it isn't any more. The mark that it left there is the moment of its move: had
 * the process that moved it no time for the registry, this does that.
 */
export const translateStoreError =
  (entry: TenantRecord) =>
  async (error: unknown): Promise<unknown> => {
    if (error instanceof TenantMoved) await setHome(entry, error.home).catch(() => {})
    if (error instanceof DiskFailure) return storageFailed(entry, error)
    if (error instanceof StorageFull) reportThrottled('STORAGE_FULL', entry.id, { cause: error })
    const isNotFound = error instanceof Problem && error.code === 'TENANT_NOT_FOUND'
    if (!isNotFound && !(error instanceof DatabaseDamaged)) return error
    // Its old home may be removed already, while a request still goes there.
    const { uid, home, moved } = entry
    const current = await registry.db.select().from(tenants).where(eq(tenants.uid, uid)).get()
    if (current && (current.home !== home || current.moved !== moved)) return new Busy(error)
    return current ? tenantDamaged(entry, error) : notFoundProblem('tenant')
  }

/** The tenant alone can't be served until somebody puts its data right. */
function tenantDamaged({ id }: TenantRecord, cause: Error): Problem {
  reportThrottled('TENANT_DAMAGED', id, { reason: cause.message, cause })
  const message = 'The data of this tenant is missing or damaged. The operator of this server has to restore it.'
  return new Problem(503, 'TENANT_DAMAGED', message, { cause, headers: { 'retry-after': '60' } })
}

function storageFailed({ id }: TenantRecord, cause: DiskFailure): Problem {
  reportThrottled('STORAGE_FAILED', id, { cause })
  const message = 'The storage of this server failed and is being reopened. Try again in a moment.'
  return new Problem(503, 'STORAGE_FAILED', message, { cause, headers: { 'retry-after': '1' } })
}

const REPORT_INTERVAL_MS = 60_000 // ms between two lines about the same
const MAX_TRACKED_REPORTS = 1_000
const lastReportAt = new BoundedMap<string, number>(MAX_TRACKED_REPORTS)

/** Every request of a tenant may meet the same failure. */
function reportThrottled(what: string, tenant: string, details: { reason?: string; cause: Error }) {
  const [key, time] = [`${what} ${tenant}`, performance.now()]
  if (time < (lastReportAt.get(key) ?? Number.NEGATIVE_INFINITY) + REPORT_INTERVAL_MS) return
  lastReportAt.set(key, time)
  logError(what, { tenant, ...details })
}
