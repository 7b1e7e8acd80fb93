import { asc, eq } from 'drizzle-orm'
import { tenantMigrations } from '../../migrations'
import { config } from '../config'
import { iso, now } from '../core/clock'
import { Problem } from '../core/problem'
import { notesOf } from '../core/request-log'
import { Conflict } from '../storage/errors'
import type { Store } from '../storage/port'
import { freshHome } from './buckets'
import { hostOf } from './caller'
import { type Entry, elsewhere, leaveRemains, placeOf } from './homes'
import { giveHosts } from './hosts'
import { changing, recall } from './memory'
import { registry } from './registry'
import { requireSecrets } from './secrets'
import { checkDatabase, discard, folderOf, hasFolder, makeFolder, storage } from './storage'
import { hosts, tenants } from './tables'

/** One tenant's data: `db` reads, `write` changes. */
export type Tenant = Store & { tenant: string }

/**
 * The tenant that the header names; without one, that of the host, or else the default. At once when it is known. Where
 * senders can set no header, the address may name it (`otherwise`).
 */
export function tenantOf(request: Request, otherwise?: string | null): Tenant | Promise<Tenant> {
  const named = (config.ATOLL_TENANT_HEADER === 'on' && request.headers.get('tenant')) || otherwise
  const entry = named ? byId(named) : byHost(hostOf(request))
  if (entry && !(entry instanceof Promise)) return asked(request, serving(entry))
  const found = async () => (await entry) ?? (named ? noTenant(named) : ((await unmapped()) ?? noTenantAt(request)))
  return (async () => asked(request, serving(await found())))()
}

/** The tenant that answers where neither header nor host names one: that of the setting, or the only one there is. */
async function unmapped(): Promise<Entry | undefined> {
  if (config.ATOLL_DEFAULT_TENANT) return byId(config.ATOLL_DEFAULT_TENANT)
  const { only } = await recall(registry, 'tenants', 'only', async () => {
    const [first, second] = await registry.db.select().from(tenants).limit(2)
    return { only: second ? undefined : first }
  })
  return only
}

/** The id of that tenant. */
export const unmappedTenant = async () => (await unmapped())?.id

function noTenant(id: string): never {
  const hint = id === id.toLowerCase() ? '' : ' Ids of tenants are lower case.'
  throw new Problem(404, 'TENANT_NOT_FOUND', `There is no tenant "${id.slice(0, 100)}".${hint}`)
}

function noTenantAt(request: Request): never {
  const host = hostOf(request).slice(0, 253)
  const where = host ? `No tenant answers at ${host}.` : 'The request names no host.'
  const hint = config.ATOLL_TENANT_HEADER === 'on' ? 'Send the header "tenant", or ask' : 'Ask'
  const message = `${where} ${hint} the operator to give the tenant this host (atoll tenant hosts).`
  throw new Problem(404, 'TENANT_NOT_FOUND', message)
}

function asked(request: Request, tenant: Known): Tenant {
  const notes = notesOf(request)
  if (notes) notes.tenant = tenant.tenant
  tenant.served = performance.now()
  return tenant
}

/** The tenant of this id; throws 404 or, when it is suspended, 403. */
export const tenantNamed = async (id: string): Promise<Tenant> => serving((await byId(id)) ?? noTenant(id))

/** The same, whatever its status: for work that is not done for callers. */
export const anyTenantNamed = async (id: string): Promise<Tenant> => {
  const entry = (await byId(id)) ?? noTenant(id)
  return { tenant: id, ...storeOf(entry) }
}

/** The tenant that answers at this host, if there is one and it is not suspended. */
export const tenantAt = async (host: string): Promise<Tenant | undefined> => {
  const entry = await byHost(host)
  return entry?.status === 'active' ? serving(entry) : undefined
}

/** Makes a tenant that answers at the given hosts, with its database ready. */
export async function createTenant(id: string, names: string[] = []): Promise<Tenant> {
  requireTenantId(id)
  if (await isRegistered(id)) throw tenantExists(id)
  if (hasFolder(id))
    throw new Problem(409, 'TENANT_EXISTS', `The folder ${folderOf(id)} is there already. Move it away first.`)
  // Where there is a tenant, missing keys are lost ones: they are made before the first.
  await requireSecrets()
  const entry: Entry = {
    ...{ id, uid: Bun.randomUUIDv7(), status: 'active' },
    ...{ home: await freshHome(), moved: null, made: null },
  }
  const added = changing(registry, 'tenants', async (tx) => {
    await tx.insert(tenants).values({ ...entry, created: iso(now()) })
    await giveHosts(tx, id, names)
  })
  await added.catch((error) => taken(error, id))
  if (!entry.home) makeFolder(id)
  await storeOf(entry).db.ask('select 1')
  return serving(await noteMade(entry))
}

/** It becomes the name of a folder. @throws 400 */
export function requireTenantId(id: string) {
  if (!/^[a-z0-9][a-z0-9-]{0,62}$/.test(id))
    throw new Problem(400, 'INVALID_INPUT', `"${id}" is no tenant id: use a-z, 0-9 and dashes, at most 63.`)
}

/** Notes that a tenant's database was made: from now on it is never made again. */
async function noteMade(entry: Entry): Promise<Entry> {
  const made = iso(now())
  await changing(registry, 'tenants', (tx) => tx.update(tenants).set({ made }).where(eq(tenants.uid, entry.uid)))
  return { ...entry, made }
}

/** Reads a tenant's whole database, and tells what is wrong with it. */
export const checkTenant = async (id: string) => checkDatabase(placeOf((await byId(id)) ?? noTenant(id)))

/** The tenants that requests came for since a moment of this process's stopwatch (`performance.now`). */
export const servedSince = (moment: number): Tenant[] => [...known.values()].filter(({ served }) => served >= moment)

/** Those of them whose databases are open still. */
export const openServedSince = (moment: number): Tenant[] =>
  [...known.values()].filter((one) => one.served >= moment && storage.isOpen(placeOf({ ...one, id: one.tenant })))

/** Every tenant with its hosts, by id. */
export async function listTenants() {
  const [all, names] = await Promise.all([
    registry.db.select().from(tenants).orderBy(asc(tenants.id)),
    registry.db.select().from(hosts).orderBy(asc(hosts.host)),
  ])
  return all.map(({ uid: _, made: __, home, moved, ...entry }) => ({
    ...entry,
    ...(home && { home }),
    ...(moved && { moved }),
    hosts: names.filter(({ tenant }) => tenant === entry.id).map(({ host }) => host),
  }))
}

/** One tenant with its hosts; throws 404. */
export const showTenant = async (id: string) => (await listTenants()).find((tenant) => tenant.id === id) ?? noTenant(id)

/** Suspends a tenant, which then answers 403 to everybody, or resumes it. */
export async function setStatus(id: string, status: Entry['status']) {
  const changed = await changing(registry, 'tenants', (tx) =>
    tx.update(tenants).set({ status }).where(eq(tenants.id, id)).returning().get(),
  )
  if (!changed) noTenant(id)
}

/** Replaces the hosts that a tenant was given. It also goes on answering at those of its websites. */
export async function setHosts(id: string, names: string[]) {
  await showTenant(id)
  await changing(registry, 'tenants', (tx) => giveHosts(tx, id, names)).catch((error) => taken(error))
}

/** Ends a tenant. Its files are moved away, not removed; returns where to. */
export async function deleteTenant(id: string): Promise<string | undefined> {
  const gone = await changing(registry, 'tenants', async (tx) => {
    const removed = await tx.delete(tenants).where(eq(tenants.id, id)).returning().get()
    if (removed) await leaveRemains(tx, removed.uid, removed.home)
    return removed
  })
  if (!gone) return noTenant(id)
  known.delete(id)
  await storage.end(placeOf(gone), tenantMigrations)
  return discard(id)
}

/** Opens a tenant's database, whatever its status, which runs the migrations that it lacks. */
export async function migrateTenant(id: string) {
  const entry = (await byId(id)) ?? noTenant(id)
  await storeOf(entry).db.ask('select 1')
  // Whoever made the tenant may have been stopped before this.
  if (!entry.made) await noteMade(entry)
}

/** Whether there is a tenant of this id by what the registry says now, whatever is remembered. */
export const isRegistered = async (id: string) => (await registry.db.$count(tenants, eq(tenants.id, id))) > 0

export const countTenants = () => registry.db.$count(tenants)

const byId = (id: string) =>
  recall<Entry | undefined>(registry, 'tenants', `id ${id}`, () =>
    registry.db.select().from(tenants).where(eq(tenants.id, id)).get(),
  )

const byHost = (host: string) =>
  recall<Entry | undefined>(registry, 'tenants', `host ${host}`, async () => {
    const found = await registry.db
      .select()
      .from(hosts)
      .innerJoin(tenants, eq(tenants.id, hosts.tenant))
      .where(eq(hosts.host, host))
      .get()
    return found?.tenants
  })

/** Saves building stores, and what is remembered with them, for each request. They hold nothing open. */
const known = new Map<string, Known>()
type Known = Tenant & Pick<Entry, 'uid' | 'home' | 'moved' | 'made'> & { served: number }
const KNOWN = 50_000

function serving(entry: Entry): Known {
  const { id, uid, status, home, moved, made } = entry
  if (status === 'suspended')
    throw new Problem(403, 'TENANT_SUSPENDED', 'This tenant is suspended. Ask who runs this installation.')
  const found = known.get(id)
  const isThere = found?.uid === uid && found.home === home && found.moved === moved
  if (isThere && found.made === made) return found
  // Another tenant of the same id was served before, or this one elsewhere: that data is not ours.
  if (found && !isThere) storage.release(placeOf({ ...found, id })).catch(() => {})
  const tenant = { tenant: id, uid, home, moved, made, served: Number.NEGATIVE_INFINITY, ...storeOf(entry) }
  known.set(id, tenant)
  if (known.size > KNOWN) known.delete(known.keys().next().value!)
  return tenant
}

const storeOf = (entry: Entry) => storage.store(placeOf(entry), tenantMigrations, elsewhere(entry))

const tenantExists = (id: string) => new Problem(409, 'TENANT_EXISTS', `There is a tenant "${id}" already.`)

/** For ids and hosts that somebody else has taken meanwhile, or before. */
export async function taken(error: unknown, id?: string): Promise<never> {
  if (!(error instanceof Conflict)) throw error
  if (id && (await isRegistered(id))) throw tenantExists(id)
  throw new Problem(409, 'TENANT_EXISTS', 'Another tenant was given one of these hosts. Take it from that one first.')
}
