import { eq } from 'drizzle-orm'
import { tenantMigrations } from '../../migrations'
import { config } from '../config'
import type { Awaitable } from '../core/awaitable'
import { BoundedMap } from '../core/bounded-map'
import { now, toIsoString } from '../core/clock'
import { Problem } from '../core/problem'
import { notesOf } from '../core/request-log'
import { Busy, Conflict } from '../storage/errors'
import type { DatabaseLocation, Store } from '../storage/port'
import { pickHome } from './buckets'
import { dropCache, writeInvalidating } from './cache'
import { requestHost } from './client-connection'
import { keepContents, recordContents } from './content-remains'
import { checkDatabase, createTenantFolder, databases, hasTenantFolder, tenantFolder } from './databases'
import { rememberFirstTenant } from './default-tenant'
import { costlyWork } from './fair-queue'
import { assignHosts } from './hosts'
import { ensureSecrets } from './installation-keys'
import { throwHostNotFound, throwTenantNotFound } from './missing-tenant'
import { recordOperatorEvent } from './operator-events'
import { settleRestore } from './pending-restores'
import { locationOf, recordLeftovers, restoring, type TenantRecord, translateStoreError } from './placement'
import { releaseInThreads } from './reader-threads'
import { registry } from './registry'
import { tenants } from './tables'
import { moveToTrash } from './tenant-files'
import { forgetFolder, recordFolder, trashAbandonedFolders } from './tenant-folders'
import { getTenantInfo, isRegistered } from './tenant-list'
import { findAtHost, findByHost, findById, findDefaultTenant } from './tenant-records'

/** One tenant's data: `db` reads, `write` writes. Of a served tenant, `place` is where the data are. */
export type Tenant = Store & { tenant: string; place?: DatabaseLocation }

/**
 * Returns the tenant of a request: that of the header, else of `fallbackId`, else of the host, else the default tenant.
 * Returns it without a promise when it is cached. `fallbackId` comes from the URL, where senders cannot set headers.
 * @throws 404 TENANT_NOT_FOUND, 403 TENANT_SUSPENDED
 */
export function resolveTenant(request: Request, fallbackId?: string | null): Awaitable<Tenant> {
  const tenantId = (config.ATOLL_TENANT_HEADER === 'on' && request.headers.get('tenant')) || fallbackId
  const entry = tenantId ? findById(tenantId) : findAtHost(requestHost(request))
  if (entry && !(entry instanceof Promise) && !entry.restoring) return recordRequest(request, openTenant(entry))
  return (async () => {
    const record = (await entry) ?? (tenantId ? throwTenantNotFound(tenantId) : throwHostNotFound(request))
    return recordRequest(request, await openSettled(record))
  })()
}

/**
 * Returns the tenant of a request by its host alone, else the default tenant; undefined when there is none. Returns it
 * without a promise when it is cached.
 * @throws 403 TENANT_SUSPENDED
 */
export function resolveHostTenant(request: Request): Tenant | Promise<Tenant | undefined> {
  const entry = findAtHost(requestHost(request))
  if (entry && !(entry instanceof Promise) && !entry.restoring) return recordRequest(request, openTenant(entry))
  return (async () => {
    const record = await entry
    return record && recordRequest(request, await openSettled(record))
  })()
}

/** Returns the id of the tenant that answers at a host of no tenant (default: at the server's own address). */
export const getDefaultTenantId = async (host = 'localhost') => (await findDefaultTenant(host))?.id

function recordRequest(request: Request, tenant: CachedTenant): Tenant {
  const notes = notesOf(request)
  if (notes) notes.tenant = tenant.tenant
  costlyWork.noteArrival(tenant.tenant)
  tenant.servedAt = performance.now()
  return tenant
}

/** Returns the tenant with this id. @throws 404 TENANT_NOT_FOUND, 403 TENANT_SUSPENDED */
export const getTenant = async (id: string): Promise<Tenant> =>
  openSettled((await findById(id)) ?? throwTenantNotFound(id))

/**
 * Returns the tenant with this id, also when it is suspended, for work that is not part of a request.
 * @throws 404 TENANT_NOT_FOUND
 */
export const getTenantAnyStatus = async (id: string): Promise<Tenant> => {
  const entry = await settled((await findById(id)) ?? throwTenantNotFound(id))
  return { tenant: id, ...storeOf(entry) }
}

/** Tells whether a tenant is a copy that must not act outside. */
export const isOutgoingHeld = async (id: string): Promise<boolean> => !!(await findById(id))?.outgoingHeld

/** Returns the tenant of a host, or undefined when there is none or it is suspended. */
export const findTenantByHost = async (host: string): Promise<Tenant | undefined> => {
  const entry = await findByHost(host)
  return entry?.status === 'active' ? openSettled(entry) : undefined
}

/**
 * Creates a tenant with the given hosts and its database.
 * @throws 400 INVALID_INPUT for an invalid id or host
 * @throws 409 TENANT_EXISTS when the id or its folder is taken, HOST_TAKEN when a host is another tenant's
 */
export async function createTenant(id: string, names: string[] = []): Promise<Tenant> {
  assertTenantId(id)
  if (await isRegistered(id)) throw tenantExists(id)
  await trashAbandonedFolders(id)
  if (hasTenantFolder(id))
    throw new Problem(409, 'TENANT_EXISTS', `The folder ${tenantFolder(id)} already exists. Move it away first.`)
  // The keys are created before the first tenant: once there is one, missing keys count as lost.
  await ensureSecrets()
  const [uid, home] = [Bun.randomUUIDv7(), await pickHome()]
  const entry: TenantRecord = { id, uid, status: 'active', home, moved: null, made: null }
  const added = writeInvalidating(registry, 'tenants', async (tx) => {
    await keepContents(tx, id)
    await tx.insert(tenants).values({ ...entry, created: toIsoString(now()) })
    await rememberFirstTenant(tx, id)
    await assignHosts(tx, id, names)
    await recordOperatorEvent(tx, 'tenant-created', id, names.length ? { hosts: names } : {})
  })
  await added.catch((error) => throwConflict(error, id))
  if (!entry.home) createTenantFolder(id)
  await storeOf(entry).db.query('select 1')
  return openTenant(await markDatabaseMade(entry))
}

/** Checks an id, which becomes the name of a folder. @throws 400 INVALID_INPUT */
export function assertTenantId(id: string) {
  if (!/^[a-z0-9][a-z0-9-]{0,62}$/.test(id))
    throw new Problem(
      400,
      'INVALID_INPUT',
      `"${id}" is not a valid tenant id. Use a-z, 0-9 and dashes, at most 63 characters.`,
    )
}

/** Records that a tenant's database was created: from now on a missing one is not created again. */
async function markDatabaseMade(entry: TenantRecord): Promise<TenantRecord> {
  const made = toIsoString(now())
  await writeInvalidating(registry, 'tenants', (tx) =>
    tx.update(tenants).set({ made, schemaVersion: tenantMigrations.sqlite.length }).where(eq(tenants.uid, entry.uid)),
  )
  return { ...entry, made }
}

/**
 * Reads a tenant's whole database and returns what is wrong with it; a complete check also compares its indexes with
 * their tables. @throws 404 TENANT_NOT_FOUND
 */
export const checkTenantDatabase = async (id: string, isComplete = false) =>
  checkDatabase(locationOf(await settled((await findById(id)) ?? throwTenantNotFound(id))), isComplete)

/** Returns the tenants that had requests since a moment of `performance.now()`. */
export const listServedSince = (moment: number): Tenant[] =>
  [...cachedTenants.values()].filter(({ servedAt }) => servedAt >= moment)

/** Returns when a tenant last had a request in this process (ms since 1970), or undefined. */
export function lastRequestTime(id: string): number | undefined {
  const servedAt = cachedTenants.get(id)?.servedAt ?? Number.NEGATIVE_INFINITY
  return Number.isFinite(servedAt) ? Math.round(performance.timeOrigin + servedAt) : undefined
}

/** Returns the tenants that had requests since a moment, and whose databases are still open. */
export const listOpenServedSince = (moment: number): Tenant[] =>
  [...cachedTenants.values()].filter((tenant) => tenant.servedAt >= moment && isOpen(tenant))

/**
 * Yields the tenants that had requests since a moment, unless their databases are closed when their turn comes. They are
 * spread over `withinMs`, so that requests do not wait for work at all of them.
 */
export async function* eachOpenServedSince(moment: number, withinMs: number): AsyncGenerator<Tenant> {
  const served = listOpenServedSince(moment) as CachedTenant[]
  for (const tenant of served) {
    if (isOpen(tenant)) yield tenant
    await Bun.sleep(Math.min(MAX_PAUSE_MS, withinMs / served.length))
  }
}

const MAX_PAUSE_MS = 20 // between two tenants
const isOpen = (tenant: CachedTenant) => databases.isOpen(locationOf({ ...tenant, id: tenant.tenant }))

/** Suspends a tenant, which then responds with 403 to every request, or resumes it. @throws 404 TENANT_NOT_FOUND */
export async function setStatus(id: string, status: TenantRecord['status']) {
  await writeInvalidating(registry, 'tenants', async (tx) => {
    const before = (await tx.select().from(tenants).where(eq(tenants.id, id)).get()) ?? throwTenantNotFound(id)
    if (before.status === status) return
    await tx.update(tenants).set({ status }).where(eq(tenants.id, id))
    await recordOperatorEvent(tx, status === 'suspended' ? 'tenant-suspended' : 'tenant-resumed', id)
  })
}

/**
 * Replaces the assigned hosts of a tenant. It keeps the hosts of its websites.
 * @throws 404 TENANT_NOT_FOUND, 409 HOST_TAKEN when a host is another tenant's
 */
export async function setHosts(id: string, names: string[]) {
  await getTenantInfo(id)
  const replaced = writeInvalidating(registry, 'tenants', async (tx) => {
    await assignHosts(tx, id, names)
    await recordOperatorEvent(tx, 'hosts-changed', id, { hosts: names })
  })
  await replaced.catch((error) => throwConflict(error))
}

/**
 * Deletes a tenant. Its files are moved, not deleted; returns where they are now.
 * @throws 404 TENANT_NOT_FOUND, 503 RESTORING
 */
export async function deleteTenant(id: string): Promise<string | undefined> {
  await settleRestore(id)
  const deleted = await writeInvalidating(registry, 'tenants', async (tx) => {
    const removed = await tx.delete(tenants).where(eq(tenants.id, id)).returning().get()
    if (removed?.restoring) throw restoring()
    if (!removed) return
    if (hasTenantFolder(id)) await recordFolder(tx, removed)
    await recordLeftovers(tx, removed.uid, removed.home)
    await recordContents(tx, removed)
    await recordOperatorEvent(tx, 'tenant-deleted', id)
    return removed
  })
  if (!deleted) return throwTenantNotFound(id)
  cachedTenants.delete(id)
  await databases.retire(locationOf(deleted), tenantMigrations)
  const trash = moveToTrash(id)
  if (trash) await registry.write((tx) => forgetFolder(tx, deleted))
  return trash
}

/**
 * Opens a tenant's database, which runs its pending migrations, also when the tenant is suspended.
 * @throws 404 TENANT_NOT_FOUND
 */
export async function migrateTenant(id: string) {
  const entry = await settled((await findById(id)) ?? throwTenantNotFound(id))
  await storeOf(entry).db.query('select 1')
  // The process that created the tenant may have been stopped before this.
  if (!entry.made) await markDatabaseMade(entry)
}

type CachedTenant = Tenant & Pick<TenantRecord, 'uid' | 'home' | 'moved' | 'made'> & { servedAt: number }
const MAX_CACHED_TENANTS = 50_000
/** Saves building stores and their caches for each request. They hold no file open. */
const cachedTenants = new BoundedMap<string, CachedTenant>(MAX_CACHED_TENANTS)

// Models and actors of a tenant take more memory than its open database, so they leave with it.
databases.onClose((place) => {
  const closed = cachedTenants.get(place.tenant)
  if (closed) dropCache(closed)
  return releaseInThreads(place)
})

/** Returns the record of a tenant that no restore is replacing. @throws 503 RESTORING */
const settled = async (entry: TenantRecord) => (entry.restoring ? settleRestore(entry.id) : entry)

const openSettled = async (entry: TenantRecord) => openTenant(await settled(entry))

function openTenant(entry: TenantRecord): CachedTenant {
  const { id, uid, status, home, moved, made } = entry
  if (status === 'suspended')
    throw new Problem(403, 'TENANT_SUSPENDED', 'This tenant is suspended. Contact the operator of this installation.')
  const existing = cachedTenants.get(id)
  const isSame = existing?.uid === uid && existing.home === home && existing.moved === moved
  if (isSame && existing.made === made) return existing
  // A tenant with the same id, or this one at another home, was open before.
  // It is closed when it is idle.
  if (existing && !isSame) databases.release(locationOf({ ...existing, id })).catch(() => {})
  const tenant = { tenant: id, uid, home, moved, made, servedAt: Number.NEGATIVE_INFINITY, ...storeOf(entry) }
  cachedTenants.set(id, tenant)
  return tenant
}

function storeOf(entry: TenantRecord) {
  const place = locationOf(entry)
  const options = { translate: translateStoreError(entry), findMovedReads: findMovedReads(entry) }
  return { ...databases.getStore(place, tenantMigrations, options), place }
}

/** A request that began before its tenant was moved may still read when another one has closed the old home. */
const findMovedReads = (entry: TenantRecord) => async (error: unknown) => {
  if (!(error instanceof Busy)) return
  const current = await findById(entry.id)
  const isMoved = current?.uid === entry.uid && (current.home !== entry.home || current.moved !== entry.moved)
  return isMoved ? storeOf(current).db : undefined
}

const tenantExists = (id: string) => new Problem(409, 'TENANT_EXISTS', `There is a tenant "${id}" already.`)

/** @throws 409 TENANT_EXISTS for a conflict of ids, HOST_TAKEN for one of hosts, or the error itself */
export async function throwConflict(error: unknown, id?: string): Promise<never> {
  if (!(error instanceof Conflict)) throw error
  if (id && (await isRegistered(id))) throw tenantExists(id)
  throw new Problem(409, 'HOST_TAKEN', 'Another tenant already has one of these hosts. Remove it there first.')
}
