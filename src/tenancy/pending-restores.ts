import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { and, eq, isNotNull } from 'drizzle-orm'
import { config } from '../config'
import { BoundedMap } from '../core/bounded-map'
import { now, toIsoString } from '../core/clock'
import { log } from '../core/log'
import { Problem } from '../core/problem'
import type { Tx } from '../storage/port'
import { PROPAGATION_MS, writeInvalidating } from './cache'
import { tryClaim, tryLockFile } from './databases'
import { throwTenantNotFound } from './missing-tenant'
import { recordOperatorEvent } from './operator-events'
import { restoring, type TenantRecord } from './placement'
import { registry } from './registry'
import { STAGING } from './staged-folder'
import { type PendingRestore, tenants } from './tables'
import { toTrashPath, undoExchange } from './tenant-files'

const findRecord = (id: string): Promise<TenantRecord | undefined> =>
  registry.db.select().from(tenants).where(eq(tenants.id, id)).get()

/** A tenant that is paused while its data are replaced. It is disposed of when the restore is registered or undone. */
export type PausedTenant = AsyncDisposable & { restore: PendingRestore }

/**
 * Pauses a tenant: every process answers its requests with 503 RESTORING from now on. The registry says what is done to
 * its files, so that any process can undo it when this one dies. An earlier restore whose process died is undone first.
 * @throws 409 TENANT_CHANGED, TENANT_MOVING; 503 RESTORING when another restore has begun
 */
export async function pauseTenant(before: TenantRecord, uid: string, stagedName: string): Promise<PausedTenant> {
  const restore = {
    ...{ uid, since: toIsoString(now()) },
    ...{ staged: join(STAGING, stagedName), trash: toTrashPath(before.id) },
  }
  const earlier = await findRecord(before.id)
  if (earlier?.restoring) await undoIfAbandoned(earlier)
  const claim = await claimRestore(before.uid, restore.staged)
  if (!claim) throw new Problem(409, 'TENANT_MOVING', 'This tenant is being moved. Wait until that move has finished.')
  try {
    await writeInvalidating(registry, 'tenants', async (tx) => {
      await assertUnchanged(tx, before)
      const current = await tx.select().from(tenants).where(eq(tenants.id, before.id)).get()
      if (current?.restoring) throw restoring()
      await tx.update(tenants).set({ restoring: restore }).where(eq(tenants.id, before.id))
    })
    await Bun.sleep(PROPAGATION_MS)
    return { restore, [Symbol.asyncDispose]: async () => void (await claim[Symbol.asyncDispose]()) }
  } catch (error) {
    await claim[Symbol.asyncDispose]()
    throw error
  }
}

/** A copy takes minutes, in which others may move, delete or restore the tenant. @throws 409 TENANT_CHANGED */
export async function assertUnchanged(tx: Tx, { id, uid, home }: TenantRecord) {
  if (await tx.$count(tenants, and(eq(tenants.uid, uid), eq(tenants.home, home)))) return
  const message = `The tenant "${id}" was moved, deleted or restored meanwhile. Look at it, and start again.`
  throw new Problem(409, 'TENANT_CHANGED', message)
}

/** Returns a claim that ends with the process that restores, or undefined while that process lives. */
async function claimRestore(uid: string, staged: string): Promise<AsyncDisposable | undefined> {
  if (config.ATOLL_DATABASE_URL) return tryClaim(`move ${uid}`)
  const lock = await tryLockFile(join(staged, 'lock.db')).catch(() => ({ [Symbol.dispose]() {} })) // no staged folder
  return lock && { [Symbol.asyncDispose]: async () => lock[Symbol.dispose]() }
}

/** Brings the data before back, and serves them again. What was undone already stays as it is. */
export async function undoRestore({ id }: Pick<TenantRecord, 'id'>, restore: PendingRestore) {
  await undoExchange({ tenant: id, ...restore })
  await writeInvalidating(registry, 'tenants', async (tx) => {
    const current = await tx.select().from(tenants).where(eq(tenants.id, id)).get()
    if (current?.restoring?.uid !== restore.uid) return
    await tx.update(tenants).set({ restoring: null }).where(eq(tenants.id, id))
    await recordOperatorEvent(tx, 'tenant-restore-undone', id, { since: restore.since })
  })
  log.warn({ event: 'restore-undone', tenant: id, since: restore.since, message: UNDONE })
}

const UNDONE =
  'A restore did not come to its end. The tenant has the data from before again; start the restore once more.'

const CHECK_INTERVAL_MS = 1_000
const MAX_CHECKED = 1_000
const lastCheckAt = new BoundedMap<string, number>(MAX_CHECKED)

/**
 * Returns the current record of a tenant whose data were being replaced a moment ago. A restore whose process died is
 * undone first.
 * @throws 503 RESTORING while the data are being replaced, 404 TENANT_NOT_FOUND
 */
export async function settleRestore(id: string): Promise<TenantRecord> {
  const current = (await findRecord(id)) ?? throwTenantNotFound(id)
  if (!current.restoring) return current
  const time = performance.now()
  // A claim may take a connection, so requests do not each try it.
  if (time < (lastCheckAt.get(id) ?? Number.NEGATIVE_INFINITY) + CHECK_INTERVAL_MS) throw restoring()
  lastCheckAt.set(id, time)
  return (await undoIfAbandoned(current)) ?? current
}

/** @throws 503 RESTORING while the process that restores lives */
async function undoIfAbandoned(entry: TenantRecord): Promise<TenantRecord | undefined> {
  const { staged } = entry.restoring!
  await using claim = await claimRestore(entry.uid, staged)
  if (!claim) throw restoring()
  // The process may have ended its restore in the moment before.
  const current = await findRecord(entry.id)
  if (!current?.restoring) return current
  if (current.uid !== entry.uid || current.restoring.staged !== staged) throw restoring()
  await undoRestore(current, current.restoring)
  rmSync(join(config.ATOLL_TENANTS, staged), { recursive: true, force: true })
  return findRecord(entry.id)
}

/** Undoes the restores whose processes died. Returns the tenants concerned. */
export async function undoAbandonedRestores(): Promise<string[]> {
  const undone: string[] = []
  for (const entry of await registry.db.select().from(tenants).where(isNotNull(tenants.restoring)))
    await undoIfAbandoned(entry).then(
      () => undone.push(entry.id),
      (error) => {
        if (!(error instanceof Problem && error.code === 'RESTORING')) throw error
      },
    )
  return undone
}
