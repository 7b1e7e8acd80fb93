import { asc, eq } from 'drizzle-orm'
import { tenantMigrations } from '../../migrations'
import { config } from '../config'
import { BoundedMap } from '../core/bounded-map'
import { now, toIsoString } from '../core/clock'
import { Problem } from '../core/problem'
import { notesOf } from '../core/request-log'
import { Conflict } from '../storage/errors'
import type { Store } from '../storage/port'
import { pickHome } from './buckets'
import { cached, writeInvalidating } from './cache'
import { requestHost } from './client-connection'
import { checkDatabase, createTenantFolder, databases, hasTenantFolder, moveToTrash, tenantFolder } from './databases'
import { assignHosts } from './hosts'
import { ensureSecrets } from './installation-keys'
import { locationOf, recordLeftovers, type TenantRecord, translateStoreError } from './placement'
import { registry } from './registry'
import { hosts, tenants } from './tables'

/** One tenant's data: `db` reads, `write` changes. */
export type Tenant = Store & { tenant: string }

/**
 * The tenant that the header names; without one, that of the host, or else the default. At once when it is known. Where
 * senders can set no header, the address may name it (`otherwise`).
 */
export function resolveTenant(request: Request, fallbackId?: string | null): Tenant | Promise<Tenant> {
  const tenantId = (config.ATOLL_TENANT_HEADER === 'on' && request.headers.get('tenant')) || fallbackId
  const entry = tenantId ? findById(tenantId) : findByHost(requestHost(request))
  if (entry && !(entry instanceof Promise)) return recordRequest(request, openTenant(entry))
  const findRecord = async () =>
    (await entry) ??
    (tenantId ? throwTenantNotFound(tenantId) : ((await findDefaultTenant()) ?? throwHostNotFound(request)))
  return (async () => recordRequest(request, openTenant(await findRecord())))()
}

/** The tenant that answers where neither header nor host names one: that of the setting, or the only one there is. */
async function findDefaultTenant(): Promise<TenantRecord | undefined> {
  if (config.ATOLL_DEFAULT_TENANT) return findById(config.ATOLL_DEFAULT_TENANT)
  const { only } = await cached(registry, 'tenants', 'only', async () => {
    const [first, second] = await registry.db.select().from(tenants).limit(2)
    return { only: second ? undefined : first }
  })
  return only
}

/** The id of that tenant. */
export const getDefaultTenantId = async () => (await findDefaultTenant())?.id

function throwTenantNotFound(id: string): never {
  const hint = id === id.toLowerCase() ? '' : ' Ids of tenants are lower case.'
  throw new Problem(404, 'TENANT_NOT_FOUND', `There is no tenant "${id.slice(0, 100)}".${hint}`)
}

function throwHostNotFound(request: Request): never {
  const host = requestHost(request).slice(0, 253)
  const where = host ? `No tenant answers at ${host}.` : 'The request names no host.'
  const hint = config.ATOLL_TENANT_HEADER === 'on' ? 'Send the header "tenant", or ask' : 'Ask'
  const message = `${where} ${hint} the operator to give the tenant this host (atoll tenant hosts).`
  throw new Problem(404, 'TENANT_NOT_FOUND', message)
}

function recordRequest(request: Request, tenant: CachedTenant): Tenant {
  const notes = notesOf(request)
  if (notes) notes.tenant = tenant.tenant
  tenant.servedAt = performance.now()
  return tenant
}

/** The tenant of this id; throws 404 or, when it is suspended, 403. */
export const getTenant = async (id: string): Promise<Tenant> =>
  openTenant((await findById(id)) ?? throwTenantNotFound(id))

/** The same, whatever its status: for work that is not done for callers. */
export const getTenantAnyStatus = async (id: string): Promise<Tenant> => {
  const entry = (await findById(id)) ?? throwTenantNotFound(id)
  return { tenant: id, ...storeOf(entry) }
}

/** The tenant that answers at this host, if there is one and it is not suspended. */
export const findTenantByHost = async (host: string): Promise<Tenant | undefined> => {
  const entry = await findByHost(host)
  return entry?.status === 'active' ? openTenant(entry) : undefined
}

/** Makes a tenant that answers at the given hosts, with its database ready. */
export async function createTenant(id: string, names: string[] = []): Promise<Tenant> {
  assertTenantId(id)
  if (await isRegistered(id)) throw tenantExists(id)
  if (hasTenantFolder(id))
    throw new Problem(409, 'TENANT_EXISTS', `The folder ${tenantFolder(id)} already exists. Move it away first.`)
  // Where there is a tenant, missing keys are lost ones: they are made before the first.
  await ensureSecrets()
  const entry: TenantRecord = {
    ...{ id, uid: Bun.randomUUIDv7(), status: 'active' },
    ...{ home: await pickHome(), moved: null, made: null },
  }
  const added = writeInvalidating(registry, 'tenants', async (tx) => {
    await tx.insert(tenants).values({ ...entry, created: toIsoString(now()) })
    await assignHosts(tx, id, names)
  })
  await added.catch((error) => throwConflict(error, id))
  if (!entry.home) createTenantFolder(id)
  await storeOf(entry).db.query('select 1')
  return openTenant(await markDatabaseMade(entry))
}

/** It becomes the name of a folder. @throws 400 */
export function assertTenantId(id: string) {
  if (!/^[a-z0-9][a-z0-9-]{0,62}$/.test(id))
    throw new Problem(
      400,
      'INVALID_INPUT',
      `"${id}" is not a valid tenant id. Use a-z, 0-9 and dashes, at most 63 characters.`,
    )
}

/** Notes that a tenant's database was made: from now on it is never made again. */
async function markDatabaseMade(entry: TenantRecord): Promise<TenantRecord> {
  const made = toIsoString(now())
  await writeInvalidating(registry, 'tenants', (tx) =>
    tx.update(tenants).set({ made }).where(eq(tenants.uid, entry.uid)),
  )
  return { ...entry, made }
}

/** Reads a tenant's whole database, and tells what is wrong with it. */
export const checkTenantDatabase = async (id: string) =>
  checkDatabase(locationOf((await findById(id)) ?? throwTenantNotFound(id)))

/** The tenants that requests came for since a moment of this process's stopwatch (`performance.now`). */
export const listServedSince = (moment: number): Tenant[] =>
  [...cachedTenants.values()].filter(({ servedAt }) => servedAt >= moment)

/** Those of them whose databases are open still. */
export const listOpenServedSince = (moment: number): Tenant[] =>
  [...cachedTenants.values()].filter(
    (one) => one.servedAt >= moment && databases.isOpen(locationOf({ ...one, id: one.tenant })),
  )

/** Every tenant with its hosts, by id. */
export async function listTenants() {
  const [records, names] = await Promise.all([
    registry.db.select().from(tenants).orderBy(asc(tenants.id)),
    registry.db.select().from(hosts).orderBy(asc(hosts.host)),
  ])
  const hostsOf = Map.groupBy(names, ({ tenant }) => tenant)
  return records.map(({ uid: _, made: __, home, moved, ...entry }) => ({
    ...entry,
    ...(home && { home }),
    ...(moved && { moved }),
    hosts: hostsOf.get(entry.id)?.map(({ host }) => host) ?? [],
  }))
}

/** One tenant with its hosts; throws 404. */
export const getTenantInfo = async (id: string) =>
  (await listTenants()).find((tenant) => tenant.id === id) ?? throwTenantNotFound(id)

/** Suspends a tenant, which then answers 403 to everybody, or resumes it. */
export async function setStatus(id: string, status: TenantRecord['status']) {
  const changed = await writeInvalidating(registry, 'tenants', (tx) =>
    tx.update(tenants).set({ status }).where(eq(tenants.id, id)).returning().get(),
  )
  if (!changed) throwTenantNotFound(id)
}

/** Replaces the hosts that a tenant was given. It also goes on answering at those of its websites. */
export async function setHosts(id: string, names: string[]) {
  await getTenantInfo(id)
  await writeInvalidating(registry, 'tenants', (tx) => assignHosts(tx, id, names)).catch((error) =>
    throwConflict(error),
  )
}

/** Ends a tenant. Its files are moved away, not removed; returns where to. */
export async function deleteTenant(id: string): Promise<string | undefined> {
  const deleted = await writeInvalidating(registry, 'tenants', async (tx) => {
    const removed = await tx.delete(tenants).where(eq(tenants.id, id)).returning().get()
    if (removed) await recordLeftovers(tx, removed.uid, removed.home)
    return removed
  })
  if (!deleted) return throwTenantNotFound(id)
  cachedTenants.delete(id)
  await databases.retire(locationOf(deleted), tenantMigrations)
  return moveToTrash(id)
}

/** Opens a tenant's database, whatever its status, which runs the migrations that it lacks. */
export async function migrateTenant(id: string) {
  const entry = (await findById(id)) ?? throwTenantNotFound(id)
  await storeOf(entry).db.query('select 1')
  // Whoever made the tenant may have been stopped before this.
  if (!entry.made) await markDatabaseMade(entry)
}

/** Whether there is a tenant of this id by what the registry says now, whatever is remembered. */
export const isRegistered = async (id: string) => (await registry.db.$count(tenants, eq(tenants.id, id))) > 0

export const countTenants = () => registry.db.$count(tenants)

const findById = (id: string) =>
  cached<TenantRecord | undefined>(registry, 'tenants', `id ${id}`, () =>
    registry.db.select().from(tenants).where(eq(tenants.id, id)).get(),
  )

const findByHost = (host: string) =>
  cached<TenantRecord | undefined>(registry, 'tenants', `host ${host}`, async () => {
    const row = await registry.db
      .select()
      .from(hosts)
      .innerJoin(tenants, eq(tenants.id, hosts.tenant))
      .where(eq(hosts.host, host))
      .get()
    return row?.tenants
  })

type CachedTenant = Tenant & Pick<TenantRecord, 'uid' | 'home' | 'moved' | 'made'> & { servedAt: number }
const MAX_CACHED_TENANTS = 50_000
/** Saves building stores, and what is remembered with them, for each request. They hold nothing open. */
const cachedTenants = new BoundedMap<string, CachedTenant>(MAX_CACHED_TENANTS)

function openTenant(entry: TenantRecord): CachedTenant {
  const { id, uid, status, home, moved, made } = entry
  if (status === 'suspended')
    throw new Problem(403, 'TENANT_SUSPENDED', 'This tenant is suspended. Contact the operator of this installation.')
  const existing = cachedTenants.get(id)
  const isSame = existing?.uid === uid && existing.home === home && existing.moved === moved
  if (isSame && existing.made === made) return existing
  // Another tenant of the same id was served before, or this one elsewhere: that data is not ours.
  if (existing && !isSame) databases.release(locationOf({ ...existing, id })).catch(() => {})
  const tenant = { tenant: id, uid, home, moved, made, servedAt: Number.NEGATIVE_INFINITY, ...storeOf(entry) }
  cachedTenants.set(id, tenant)
  return tenant
}

const storeOf = (entry: TenantRecord) =>
  databases.getStore(locationOf(entry), tenantMigrations, translateStoreError(entry))

const tenantExists = (id: string) => new Problem(409, 'TENANT_EXISTS', `There is a tenant "${id}" already.`)

/** For ids and hosts that somebody else has taken meanwhile, or before. */
export async function throwConflict(error: unknown, id?: string): Promise<never> {
  if (!(error instanceof Conflict)) throw error
  if (id && (await isRegistered(id))) throw tenantExists(id)
  throw new Problem(409, 'TENANT_EXISTS', 'Another tenant already has one of these hosts. Remove it there first.')
}
