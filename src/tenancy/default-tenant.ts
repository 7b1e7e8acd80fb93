import { and, asc, eq, isNull, ne } from 'drizzle-orm'
import { config } from '../config'
import { badRequest } from '../core/problem'
import { isAddress } from '../core/ssrf-guard'
import type { Tx } from '../storage/port'
import { cached, writeInvalidating } from './cache'
import { throwTenantNotFound } from './missing-tenant'
import { recordOperatorEvent } from './operator-events'
import { registry } from './registry'
import { installationSettings, tenants } from './tables'

const FIRST = 'first-tenant'
const CHOICE = 'default-tenant'

/**
 * Where the default tenant answers: at every host of no tenant, at loopback names and IP addresses only, or nowhere, so
 * that requests have to name a tenant.
 */
export type DefaultTenantMode = 'everywhere' | 'local' | 'none'

/** What the operator chose. Without a tenant, `local` means the first one there was. */
export type DefaultTenantChoice = { mode: DefaultTenantMode; tenant?: string | null }

/**
 * The tenant of requests that no header and no host gives to another one, and why it is that one: ATOLL_DEFAULT_TENANT,
 * the choice of the operator, the only tenant, or the first of several.
 */
export type DefaultTenant = {
  mode: DefaultTenantMode
  tenant: string | null
  source: 'setting' | 'operator' | 'only' | 'first'
}

type CachedDefault = DefaultTenant & { hasSeveral: boolean }

/** Tells whether a host is no name that a customer could have: a loopback name or an IP address. */
export const isLocalHost = (host: string) => /^(.+\.)?localhost$/.test(host) || isAddress(host)

/** Returns the default tenant, and where it answers. */
export async function getDefaultTenant(): Promise<DefaultTenant> {
  const { hasSeveral: _, ...found } = await findDefault()
  return found
}

/** Tells whether there is more than one tenant, copies included. */
export const hasSeveralTenants = async () => (await findDefault()).hasSeveral

/** Returns the id of the tenant that answers at a host of no tenant; undefined where there is none. */
export async function findDefaultTenantId(host: string): Promise<string | undefined> {
  const { mode, tenant } = await findDefault()
  return tenant !== null && (mode === 'everywhere' || isLocalHost(host)) ? tenant : undefined
}

const findDefault = () => cached(registry, 'tenants', `default ${config.ATOLL_DEFAULT_TENANT}`, readDefault)

async function readDefault(): Promise<CachedDefault> {
  const [first, second] = await registry.db.select({ id: tenants.id }).from(tenants).limit(2)
  return { ...(await chooseDefault(first && !second ? first.id : undefined)), hasSeveral: !!second }
}

async function chooseDefault(only: string | undefined): Promise<DefaultTenant> {
  const fixed = config.ATOLL_DEFAULT_TENANT
  if (fixed) return { mode: 'everywhere', tenant: fixed, source: 'setting' }
  const choice = (await readSetting(registry.db, CHOICE)) as DefaultTenantChoice | undefined
  if (choice) return { mode: choice.mode, tenant: choice.tenant ?? null, source: 'operator' }
  // A copy answers by itself only where there is nothing else.
  const [one, another] = await listIndependent(registry.db)
  const lone = another ? undefined : (one ?? only)
  if (lone) return { mode: 'everywhere', tenant: lone, source: 'only' }
  const first = await readSetting(registry.db, FIRST)
  const isThere = typeof first === 'string' && (await registry.db.$count(tenants, eq(tenants.id, first))) > 0
  return isThere ? { mode: 'local', tenant: first, source: 'first' } : { mode: 'none', tenant: null, source: 'first' }
}

type Reader = Pick<Tx, 'select'>

/** Returns the ids of the first two tenants, by age, that are no copies. */
async function listIndependent(db: Reader, except = ''): Promise<string[]> {
  const isOther = and(isNull(tenants.outgoingHeld), ne(tenants.id, except))
  const rows = await db.select({ id: tenants.id }).from(tenants).where(isOther).orderBy(asc(tenants.created)).limit(2)
  return rows.map(({ id }) => id)
}

async function readSetting(db: Reader, name: string): Promise<unknown> {
  const isNamed = eq(installationSettings.name, name)
  return (await db.select().from(installationSettings).where(isNamed).get())?.value
}

const writeSetting = (tx: Tx, name: string, value: unknown) =>
  tx
    .insert(installationSettings)
    .values({ name, value })
    .onConflictDoUpdate({ target: installationSettings.name, set: { value } })

/**
 * Remembers who goes on answering where no host names a tenant, in the transaction that adds a tenant: the one that has
 * been alone until then. Later tenants change nothing about it.
 */
export async function rememberFirstTenant(tx: Tx, added: string) {
  const first = await readSetting(tx, FIRST)
  if (typeof first === 'string' && (await tx.$count(tenants, eq(tenants.id, first)))) return
  const [lone, another] = await listIndependent(tx, added)
  if (!another) await writeSetting(tx, FIRST, lone ?? added)
}

/**
 * Chooses the default tenant; `local` without a tenant returns to the first one. ATOLL_DEFAULT_TENANT still prevails.
 * @throws 404 TENANT_NOT_FOUND, 400 INVALID_INPUT without the tenant that is to answer everywhere
 */
export async function chooseDefaultTenant({ mode, tenant }: DefaultTenantChoice): Promise<DefaultTenant> {
  if (mode === 'everywhere' && !tenant)
    badRequest({ path: '/tenant', message: 'Name the tenant that answers where no host names one.' })
  const chosen = mode === 'none' ? null : (tenant ?? null)
  await writeInvalidating(registry, 'tenants', async (tx) => {
    if (chosen !== null && !(await tx.$count(tenants, eq(tenants.id, chosen)))) throwTenantNotFound(chosen)
    if (mode === 'local' && chosen === null)
      await tx.delete(installationSettings).where(eq(installationSettings.name, CHOICE))
    else await writeSetting(tx, CHOICE, { mode, tenant: chosen })
    await recordOperatorEvent(tx, 'default-tenant-changed', chosen ?? '', { mode })
  })
  return getDefaultTenant()
}

/** Says in a sentence who answers where no host names a tenant. */
export function describeDefaultTenant({ mode, tenant }: DefaultTenant): string {
  if (tenant === null || mode === 'none') return 'No tenant answers where neither header nor host names one.'
  return mode === 'everywhere'
    ? `The tenant "${tenant}" answers at every host that belongs to no tenant.`
    : `The tenant "${tenant}" answers at localhost and at IP addresses; other unknown hosts get 404.`
}
