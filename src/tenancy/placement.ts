import { hostname } from 'node:os'
import { and, eq } from 'drizzle-orm'
import { BoundedMap } from '../core/bounded-map'
import { now, toIsoString } from '../core/clock'
import { logError } from '../core/log'
import { notFoundProblem, Problem } from '../core/problem'
import { Busy, DatabaseDamaged, DiskFailure, StorageFault, StorageFull, TenantMoved } from '../storage/errors'
import type { DatabaseLocation, Tx } from '../storage/port'
import { writeInvalidating } from './cache'
import { recordOperatorEvent } from './operator-events'
import { registry } from './registry'
import { type PendingRestore, remains, tenants } from './tables'

/** A tenant in the registry. `home` is `cluster/bucket` in PostgreSQL, empty for a file. */
export type TenantRecord = {
  id: string
  uid: string
  /** The identities that its data had before restores, latest first. */
  earlierUids?: string[]
  status: 'active' | 'suspended'
  home: string
  moved: string | null
  /** When its database was created. */
  made: string | null
  /** Since when nothing leaves it. */
  outgoingHeld?: string | null
  /** The restore that is replacing its data. */
  restoring?: PendingRestore | null
  /** The machine in whose folder its file is, where several servers share the registry. */
  fileServer?: string | null
}

/** Returns where a tenant's data is stored. */
export function locationOf({
  id,
  uid,
  home,
  made,
}: Pick<TenantRecord, 'id' | 'uid' | 'home' | 'made'>): DatabaseLocation {
  const [cluster, bucket] = home.split('/')
  return { tenant: id, file: `${id}/data.db`, identity: uid, exists: !!made, ...(bucket && { cluster, bucket }) }
}

/** Returns the name of a home for people and programs: `sqlite` for a file, else `cluster/bucket`. */
export const toHomeName = (home: string) => home || 'sqlite'

/**
 * Sets a tenant's home, unless that was done already. Other processes know it within a second. Returns false when the
 * tenant does not exist any more.
 */
export const setHome = ({ id, uid, home: from }: TenantRecord, home: string): Promise<boolean> =>
  writeInvalidating(registry, 'tenants', async (tx) => {
    const current = await tx.select().from(tenants).where(eq(tenants.uid, uid)).get()
    if (current?.home !== from) return !!current
    await tx
      .update(tenants)
      .set({ home, moved: toIsoString(now()), fileServer: home ? null : hostname() })
      .where(eq(tenants.uid, uid))
    await tx.delete(remains).where(and(eq(remains.uid, uid), eq(remains.home, home)))
    await recordLeftovers(tx, uid, from)
    await recordOperatorEvent(tx, 'tenant-moved', id, { from: toHomeName(from), to: toHomeName(home) })
    return true
  })

/** Records that rows are left in a bucket, to be deleted later by `purgeRemains`. Files need no record. */
export async function recordLeftovers(tx: Tx, uid: string, home: string) {
  if (home)
    await tx
      .insert(remains)
      .values({ uid, home, since: toIsoString(now()) })
      .onConflictDoNothing()
}

/**
 * Returns the error for a request to a tenant whose data is not there any more. If the process that moved the tenant
 * could not update the registry, this does it, from the mark that the move left at the old home.
 */
export const translateStoreError =
  (entry: TenantRecord) =>
  async (error: unknown): Promise<unknown> => {
    if (error instanceof TenantMoved) await setHome(entry, error.home).catch(() => {}) // the next request tries again
    if (error instanceof StorageFull) reportThrottled('STORAGE_FULL', entry.id, { cause: error })
    const isNotFound = error instanceof Problem && error.code === 'TENANT_NOT_FOUND'
    if (!isNotFound && !(error instanceof StorageFault)) return error
    // The old home may be removed already, while a request still uses it.
    const { id, uid, home, moved } = entry
    const current = await registry.db.select().from(tenants).where(eq(tenants.id, id)).get()
    // A restore in place gives it other data, and so does one that ended meanwhile.
    if (current?.restoring || (current?.moved && current.uid !== uid)) return restoring(error)
    if (current && current.uid !== uid) return notFoundProblem('tenant')
    if (error instanceof DiskFailure) return storageFailed(entry, error)
    if (!isNotFound && !(error instanceof DatabaseDamaged)) return error
    if (current && (current.home !== home || current.moved !== moved)) return new Busy(error)
    if (current && isElsewhere(current, error)) return tenantElsewhere(current, error)
    return current ? tenantDamaged(entry, error) : notFoundProblem('tenant')
  }

/** 503 RESTORING: the data of a tenant are being replaced by those of a backup. */
export const restoring = (cause?: unknown) =>
  new Problem(503, 'RESTORING', 'The data of this tenant are being restored. Try again in a few seconds.', {
    cause,
    headers: { 'retry-after': '2' },
  })

const MAX_DAMAGES = 1_000
/** When the disk last failed for a tenant (ms since 1970). */
const storageFailures = new BoundedMap<string, number>(MAX_DAMAGES)

/** Returns the tenants for which the disk has failed since then (ms since 1970). */
export const listStorageFailuresSince = (time: number) =>
  [...storageFailures].flatMap(([tenant, failedAt]) => (failedAt >= time ? [tenant] : []))

/** Forgets that the disk has failed for a tenant, because it works again. */
export const forgetStorageFailure = (tenant: string) => void storageFailures.delete(tenant)

const damages = new BoundedMap<string, { tenant: string; reason: string; time: number }>(MAX_DAMAGES)

/** Returns the tenants that this process found damaged since then (ms since 1970). */
export const listDamagedSince = (time: number) => [...damages.values()].filter((damage) => damage.time >= time)

/** Of several servers that share a database, only the one to which a tenant was moved has its file. */
const isElsewhere = ({ home, fileServer }: TenantRecord, { message }: Error) =>
  !home && !!fileServer && fileServer !== hostname() && message.endsWith('is missing.')

function tenantElsewhere({ id, fileServer }: TenantRecord, cause: Error): Problem {
  reportThrottled('TENANT_ELSEWHERE', id, { reason: `its file is on the server ${fileServer}`, cause })
  const message = `The data of this tenant are in a file of the server ${fileServer}, which shares this database. Nothing has to be restored: ask that server, or move the tenant to PostgreSQL there.`
  return new Problem(503, 'TENANT_ELSEWHERE', message, { cause, headers: { 'retry-after': '60' } })
}

/** Only this tenant cannot be served, until its data is restored. */
function tenantDamaged({ id }: TenantRecord, cause: Error): Problem {
  reportThrottled('TENANT_DAMAGED', id, { reason: cause.message, cause })
  damages.set(id, { tenant: id, reason: cause.message, time: now() })
  const message = 'The data of this tenant is missing or damaged. The operator of this server has to restore it.'
  return new Problem(503, 'TENANT_DAMAGED', message, { cause, headers: { 'retry-after': '60' } })
}

function storageFailed({ id }: TenantRecord, cause: DiskFailure): Problem {
  reportThrottled('STORAGE_FAILED', id, { cause })
  storageFailures.set(id, now())
  const message = 'The storage of this server failed and is being reopened. Try again in a moment.'
  return new Problem(503, 'STORAGE_FAILED', message, { cause, headers: { 'retry-after': '1' } })
}

const REPORT_INTERVAL_MS = 60_000
const MAX_TRACKED_REPORTS = 1_000
const lastReportAt = new BoundedMap<string, number>(MAX_TRACKED_REPORTS)

/** Logs an error at most once a minute, because every request of a tenant may meet it. */
function reportThrottled(what: string, tenant: string, details: { reason?: string; cause: Error }) {
  const [key, time] = [`${what} ${tenant}`, performance.now()]
  if (time < (lastReportAt.get(key) ?? Number.NEGATIVE_INFINITY) + REPORT_INTERVAL_MS) return
  lastReportAt.set(key, time)
  logError(what, { tenant, ...details })
}
