import { existsSync, renameSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { tenantMigrations } from '../../migrations'
import { config } from '../config'
import { now, toIsoString } from '../core/clock'
import { Problem } from '../core/problem'
import { Conflict } from '../storage/errors'
import { LiveCopy } from '../storage/live-copy'
import type { Tx } from '../storage/port'
import { pickHome } from './buckets'
import { writeInvalidating } from './cache'
import { keepContents } from './content-remains'
import { databases, hasTenantFolder, tenantFolder } from './databases'
import { rememberFirstTenant } from './default-tenant'
import { recordOperatorEvent } from './operator-events'
import { assertUnchanged, pauseTenant, undoRestore } from './pending-restores'
import { locationOf, recordLeftovers, type TenantRecord } from './placement'
import { registry } from './registry'
import type { StagedFolder } from './staged-folder'
import { tenants } from './tables'
import { exchangeDatabase, mergeUploads, moveDatabaseToTrash, moveToTrash } from './tenant-files'
import { claimFolder, forgetFolder, recordFolder, trashAbandonedFolders } from './tenant-folders'
import { assertTenantId, throwConflict } from './tenants'

const MAX_EARLIER_UIDS = 100 // of more restores than that, the earliest have no backups any more

/** The tenant that a staged database becomes. It has a new `uid`, so that nobody takes its data for those before. */
export type RestoreDestination = { id: string; uid: string; before?: TenantRecord }

/** The event of the operator that tells where the data come from, and the tenant whose data they are. */
type DataOrigin = {
  event: 'tenant-restored' | 'tenant-cloned' | 'tenant-imported'
  from?: string
  /** The identities that the data had. */
  uids?: string[]
  metadata: Record<string, string>
}

/**
 * Checks that a tenant can be restored under an id.
 * @throws 400 INVALID_INPUT for an invalid id
 * @throws 409 TENANT_EXISTS when there is such a tenant, unless it may be replaced, or only its folder, or its files in
 * a store are still being removed
 */
export async function prepareRestoredTenant(id: string, mayReplace: boolean): Promise<RestoreDestination> {
  assertTenantId(id)
  const before = await registry.db.select().from(tenants).where(eq(tenants.id, id)).get()
  if (before && !mayReplace)
    throw new Problem(409, 'TENANT_EXISTS', `There is a tenant "${id}" already. Choose another id.`)
  if (!before) await trashAbandonedFolders(id)
  if (!before && hasTenantFolder(id))
    throw new Problem(409, 'TENANT_EXISTS', `The folder ${tenantFolder(id)} already exists. Move it away first.`)
  if (!before) await registry.write((tx) => keepContents(tx, id))
  return { id, uid: Bun.randomUUIDv7(), before }
}

/**
 * Serves a staged database, which is marked as this tenant's and used by nobody, as the tenant from now on. Hosts,
 * limits and the status of an earlier tenant of the id stay. Returns where the earlier files are now.
 * @throws 409 TENANT_EXISTS or TENANT_CHANGED when somebody else was faster; 503 RESTORING
 */
export async function serveStagedDatabase(
  destination: RestoreDestination,
  staged: StagedFolder,
  origin: DataOrigin,
): Promise<ServedData> {
  const home = await pickHome()
  if (home) await copyToBucket({ ...destination, home }, staged)
  else await syncFile(staged.file)
  const { before } = destination
  if (before) return replaceTenant({ ...destination, before, home }, staged, origin)
  return { isHeld: await addTenant({ ...destination, home }, staged, origin) }
}

/** Where the replaced files are, and whether the tenant is a copy that must not act outside. */
type ServedData = { trash?: string; isHeld?: boolean }

type PlacedDestination = RestoreDestination & { home: string }

/** Serves staged data as a new tenant. Returns whether it is held as a copy. */
async function addTenant({ id, uid, home }: PlacedDestination, staged: StagedFolder, origin: DataOrigin) {
  await registry.write((tx) => recordFolder(tx, { id, uid }))
  try {
    if (home) mergeUploads(staged.path, id)
    else renameSync(staged.path, tenantFolder(id))
  } catch (error) {
    await registry.write((tx) => forgetFolder(tx, { id, uid }))
    return throwConflict(hasTenantFolder(id) ? new Conflict(error) : error, id)
  }
  try {
    return await register({ id, uid, home }, origin)
  } catch (error) {
    moveToTrash(id)
    await registry.write((tx) => forgetFolder(tx, { id, uid }))
    return throwConflict(error, id)
  }
}

/**
 * Replaces the data of a tenant, which is paused meanwhile. The registry decides: until the new data are registered,
 * everything is undone when something fails, or when this process dies.
 */
async function replaceTenant(
  { id, uid, home, before }: PlacedDestination & { before: TenantRecord },
  staged: StagedFolder,
  origin: DataOrigin,
): Promise<{ trash?: string }> {
  await using paused = await pauseTenant(before, uid, staged.name)
  const { restore } = paused
  try {
    if (home) mergeUploads(staged.path, id)
    else await exchangeDatabase({ tenant: id, ...restore })
    await register({ id, uid, home, before }, origin)
  } catch (error) {
    // The answer of the registry may have been lost, but not what it says.
    const current = await registry.db.select().from(tenants).where(eq(tenants.id, id)).get()
    if (current?.uid !== uid) {
      await undoRestore(before, restore)
      return throwConflict(error, id)
    }
  }
  await databases.retire(locationOf(before), tenantMigrations)
  const trash = home
    ? !before.home && moveDatabaseToTrash(id, restore.trash)
    : join(config.ATOLL_TENANTS, restore.trash)
  return trash && existsSync(trash) ? { trash } : {}
}

async function copyToBucket({ id, uid, home }: { id: string; uid: string; home: string }, staged: StagedFolder) {
  await registry.write((tx) => recordLeftovers(tx, uid, home))
  await using openCopies = new AsyncDisposableStack()
  const openCopy = async (place: Parameters<typeof databases.openTenantCopy>[0]) => {
    const tenantCopy = await databases.openTenantCopy(place, tenantMigrations)
    openCopies.defer(() => tenantCopy.close())
    return tenantCopy
  }
  const source = await openCopy(staged.locate(uid))
  const target = await openCopy(locationOf({ id, uid, home, made: null }))
  const mirror = new LiveCopy(source, target)
  await mirror.copyAll()
  const differing = await source.readSnapshot(({ query }) => mirror.applyChanges(query, Number.POSITIVE_INFINITY))
  if (differing) throw new Error(`${differing} rows could not be copied.`)
  await target.finish()
  await target.runExclusive(({ markServing }) => markServing())
}

const register = (
  { id, uid, home, before }: RestoreDestination & { home: string },
  { event, from, uids = [], metadata }: DataOrigin,
) =>
  writeInvalidating(registry, 'tenants', async (tx) => {
    const time = toIsoString(now())
    const schemaVersion = tenantMigrations.sqlite.length
    const place = { uid, home, moved: time, made: time, schemaVersion }
    const known = before ? [before.uid, ...(before.earlierUids ?? [])] : []
    const earlierUids = [...new Set([...known, ...uids])].slice(0, MAX_EARLIER_UIDS)
    // What a copy does outside beside its origin would be done twice.
    const isCopy = from !== undefined && from !== id && (await tx.$count(tenants, eq(tenants.id, from))) > 0
    const held = isCopy ? { outgoingHeld: time } : {}
    if (before) await assertPaused(tx, before, uid)
    else await claimFolder(tx, { id, uid })
    if (!before) await keepContents(tx, id)
    if (before)
      await tx
        .update(tenants)
        .set({ ...place, earlierUids, restoring: null })
        .where(eq(tenants.id, id))
    else await tx.insert(tenants).values({ id, ...place, earlierUids, status: 'active', created: time, ...held })
    if (before) await recordLeftovers(tx, before.uid, before.home)
    if (!before && !isCopy) await rememberFirstTenant(tx, id)
    await tx.query('delete from remains where uid = ? and home = ?', [uid, home])
    await recordOperatorEvent(tx, event, id, metadata)
    return isCopy
  })

/** @throws 409 TENANT_CHANGED when the tenant is another one, or the restore was undone because this process seemed dead */
async function assertPaused(tx: Tx, before: TenantRecord, uid: string) {
  await assertUnchanged(tx, before)
  const current = await tx.select().from(tenants).where(eq(tenants.id, before.id)).get()
  if (current?.restoring?.uid === uid) return
  throw new Problem(409, 'TENANT_CHANGED', `The restore of "${before.id}" was undone meanwhile. Start it again.`)
}

async function syncFile(path: string) {
  const file = await open(path, 'r+')
  await file.sync().finally(() => file.close())
}
