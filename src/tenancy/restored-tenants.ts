import { renameSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { and, eq } from 'drizzle-orm'
import { tenantMigrations } from '../../migrations'
import { now, toIsoString } from '../core/clock'
import { Problem } from '../core/problem'
import { LiveCopy } from '../storage/live-copy'
import type { Tx } from '../storage/port'
import { pickHome } from './buckets'
import { writeInvalidating } from './cache'
import { keepContents } from './content-remains'
import { databases, hasTenantFolder, mergeUploads, moveToTrash, moveUploads, tenantFolder } from './databases'
import { recordOperatorEvent } from './operator-events'
import { locationOf, recordLeftovers, type TenantRecord } from './placement'
import { registry } from './registry'
import type { StagedFolder } from './staged-folder'
import { tenants } from './tables'
import { assertTenantId, throwConflict } from './tenants'

/** The tenant that a staged database becomes. It has a new `uid`, so that nobody takes its data for those before. */
export type RestoreDestination = { id: string; uid: string; before?: TenantRecord }

/** The event of the operator that tells where the data come from. */
type DataOrigin = { event: 'tenant-restored' | 'tenant-cloned' | 'tenant-imported'; metadata: Record<string, string> }

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
  if (!before && hasTenantFolder(id))
    throw new Problem(409, 'TENANT_EXISTS', `The folder ${tenantFolder(id)} already exists. Move it away first.`)
  if (!before) await registry.write((tx) => keepContents(tx, id))
  return { id, uid: Bun.randomUUIDv7(), before }
}

/**
 * Serves a staged database, which is marked as this tenant's and used by nobody, as the tenant from now on. Hosts,
 * limits and the status of an earlier tenant of the id stay. Returns where the earlier files are now.
 * @throws 409 TENANT_EXISTS or TENANT_CHANGED when somebody else was faster
 */
export async function serveStagedDatabase(
  { id, uid, before }: RestoreDestination,
  staged: StagedFolder,
  origin: DataOrigin,
): Promise<{ trash?: string }> {
  const home = await pickHome()
  if (home) await copyToBucket({ id, uid, home }, staged)
  else await syncFile(staged.file)
  if (before) mergeUploads(staged.path, id)
  else if (home) moveUploads(staged.path, id)
  const trash = before && hasTenantFolder(id) ? moveToTrash(id) : undefined
  if (!home) renameSync(staged.path, tenantFolder(id))
  try {
    await register({ id, uid, home, before }, origin)
  } catch (error) {
    if (!home || !before) moveToTrash(id)
    if (trash) renameSync(trash, tenantFolder(id))
    return throwConflict(error, id)
  }
  if (trash) moveUploads(trash, id)
  if (before) await databases.retire(locationOf(before), tenantMigrations)
  return trash ? { trash } : {}
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

const register = ({ id, uid, home, before }: RestoreDestination & { home: string }, { event, metadata }: DataOrigin) =>
  writeInvalidating(registry, 'tenants', async (tx) => {
    const time = toIsoString(now())
    const schemaVersion = tenantMigrations.sqlite.length
    const place = { uid, home, moved: time, made: time, schemaVersion }
    // What a copy does outside would be done twice.
    const held = event === 'tenant-cloned' ? { outgoingHeld: time } : {}
    if (before) await assertUnchanged(tx, before)
    if (!before) await keepContents(tx, id)
    if (before) await tx.update(tenants).set(place).where(eq(tenants.id, id))
    else await tx.insert(tenants).values({ id, ...place, status: 'active', created: time, ...held })
    if (before) await recordLeftovers(tx, before.uid, before.home)
    await tx.query('delete from remains where uid = ? and home = ?', [uid, home])
    await recordOperatorEvent(tx, event, id, metadata)
  })

/** A copy takes minutes, in which others may move, delete or restore the tenant. @throws 409 TENANT_CHANGED */
async function assertUnchanged(tx: Tx, { id, uid, home }: TenantRecord) {
  if (await tx.$count(tenants, and(eq(tenants.uid, uid), eq(tenants.home, home)))) return
  const message = `The tenant "${id}" was moved, deleted or restored meanwhile. Look at it, and start again.`
  throw new Problem(409, 'TENANT_CHANGED', message)
}

async function syncFile(path: string) {
  const file = await open(path, 'r+')
  await file.sync().finally(() => file.close())
}
