import { inArray, or, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { issueSetupToken } from '../accounts/links/setup-link'
import { Registration } from '../accounts/shapes'
import { registerUser } from '../accounts/users/users'
import { type BackupState, describeLastBackups } from '../backups/last-backups'
import { listTenantBackups } from '../backups/tenant-backups'
import { DAY_MS, now, toIsoString } from '../core/clock'
import { badRequest } from '../core/problem'
import { parseWithShape, success } from '../core/shapes'
import { describeQuotas } from '../limits/quota-overview'
import * as quotas from '../limits/quotas'
import { DEFAULT_RATE_LIMITS, getOperatorLimits, setOperatorLimits } from '../limits/rate-limits'
import type { ChosenRateLimits, QuotaChange } from '../limits/shapes'
import { nameProduct } from '../platform/settings/app-configuration'
import { applyPage, type ListQuery, parsePage, toListPage } from '../storage/pagination'
import { measureDatabase } from '../tenancy/database-size'
import { listAssignedHosts } from '../tenancy/hosts'
import { resumeOutgoing } from '../tenancy/outgoing-hold'
import { listDamagedSince } from '../tenancy/placement'
import { registry } from '../tenancy/registry'
import { hosts, tenants } from '../tenancy/tables'
import { getTenantInfo } from '../tenancy/tenant-list'
import * as tenancy from '../tenancy/tenants'
import { toAdminLink } from './admin-link'
import type { NewTenant, OperatorTenant } from './shapes'

const SORTABLE_COLUMNS = { _id: tenants.id, id: tenants.id, created: tenants.created, status: tenants.status }

/** Returns a page of tenants, by id, with their sizes and their latest requests. */
export async function list({ q, ...query }: ListQuery & { q?: string }) {
  const page = parsePage(query, SORTABLE_COLUMNS, 'id')
  const where = q ? hasInIdOrHost(q) : undefined
  const found = await applyPage(page, registry.db.select().from(tenants).where(where))
  const { items: rows, ...others } = await toListPage(page, found, () => registry.db.$count(tenants, where))
  const ids = rows.map(({ id }) => id)
  const names = await registry.db.select().from(hosts).where(inArray(hosts.tenant, ids)).orderBy(hosts.host)
  const hostsOf = Map.groupBy(names, ({ tenant }) => tenant)
  const backups = await describeLastBackups(rows)
  const items = await Promise.all(
    rows.map((row) => {
      const info = {
        ...{ id: row.id, status: row.status, created: row.created },
        ...(row.home && { home: row.home }),
        ...(row.moved && { moved: row.moved }),
        ...(row.outgoingHeld && { outgoingHeld: row.outgoingHeld }),
        hosts: hostsOf.get(row.id)?.map(({ host }) => host) ?? [],
      }
      return describe(info, backups.get(row.id)!)
    }),
  )
  return { ...others, items }
}

function hasInIdOrHost(text: string): SQL | undefined {
  // LIKE would compare letters of both cases on one engine only.
  const contains = (column: SQLiteColumn) => sql`replace(${column}, ${text.toLowerCase()}, '') <> ${column}`
  const ofHosts = registry.db.select({ tenant: hosts.tenant }).from(hosts).where(contains(hosts.host))
  return or(contains(tenants.id), inArray(tenants.id, ofHosts))
}

/** Returns the backups of a tenant, latest first. @throws 404 TENANT_NOT_FOUND, 400 NO_BACKUP_TARGET */
export async function listBackups(id: string) {
  await getTenantInfo(id)
  return listTenantBackups(id)
}

/** Returns a tenant. @throws 404 TENANT_NOT_FOUND */
export async function get(id: string) {
  const info = await getTenantInfo(id)
  return describe(info, (await describeLastBackups([info])).get(id)!)
}

/**
 * Creates a tenant. Without an administrator, the answer has a link that creates one.
 * @throws 400 INVALID_INPUT, 409 TENANT_EXISTS
 */
export async function create(input: NewTenant, request: Request) {
  const { id } = input
  await createWithAdmin(input)
  return { ...(await get(id)), setUpLink: (await createSetUpLink(id, request)).link }
}

/**
 * Creates a tenant with the name of its product and its administrator, as far as they are given.
 * @throws 400 INVALID_INPUT, 409 TENANT_EXISTS
 */
export async function createWithAdmin({ id, hosts: names = [], name, admin }: NewTenant) {
  const registration = admin && parseWithShape(Registration, admin)
  const tenant = await tenancy.createTenant(id, names)
  if (name) await nameProduct(tenant, name)
  if (!registration) return
  const privileged = { emailVerified: !!registration.email }
  // Without its administrator the tenant would block the next attempt, so it is deleted.
  await registerUser(tenant, registration, ['admin', 'user'], undefined, privileged).catch(async (error) => {
    await tenancy.deleteTenant(id)
    throw error
  })
}

/** Returns a link that creates the first administrator; null when there is one. @throws 403, 404 */
export async function createSetUpLink(id: string, request: Request) {
  const token = await issueSetupToken(await tenancy.getTenant(id))
  return { link: token ? await toAdminLink(request, id, 'set-up', token) : null }
}

/** Deletes a tenant whose id was repeated. @throws 400 INVALID_INPUT, 404 TENANT_NOT_FOUND */
export async function remove(id: string, confirmed?: string) {
  await getTenantInfo(id)
  if (confirmed !== id) badRequest({ path: 'confirm', message: `Repeat the id of the tenant: ?confirm=${id}.` })
  return { ...success, trash: (await tenancy.deleteTenant(id)) ?? null }
}

/** Suspends or resumes a tenant. @throws 404 TENANT_NOT_FOUND */
export async function setStatus(id: string, status: 'active' | 'suspended') {
  await tenancy.setStatus(id, status)
  return get(id)
}

/** Resumes a tenant; with `outgoing` it is also one that acts outside from now on. @throws 404 TENANT_NOT_FOUND */
export async function resume(id: string, { outgoing = false }: { outgoing?: boolean }) {
  if (outgoing) await resumeOutgoing(id)
  return setStatus(id, 'active')
}

/** Returns the hosts that are assigned to a tenant. @throws 404 TENANT_NOT_FOUND */
export async function getHosts(id: string) {
  await getTenantInfo(id)
  return { hosts: await listAssignedHosts(id) }
}

/** Replaces the hosts that are assigned to a tenant. @throws 400, 404 TENANT_NOT_FOUND, 409 TENANT_EXISTS */
export async function setHosts(id: string, names: string[]) {
  await tenancy.setHosts(id, names)
  return getHosts(id)
}

/** Returns the rate limits that the operator has set for a tenant. @throws 404 TENANT_NOT_FOUND */
export async function getLimits(id: string) {
  await getTenantInfo(id)
  return { ...(await getOperatorLimits(id)), defaults: DEFAULT_RATE_LIMITS }
}

/** Replaces the rate limits of a tenant. @throws 404 TENANT_NOT_FOUND */
export async function setLimits(id: string, limits: ChosenRateLimits) {
  await setOperatorLimits(id, limits)
  return getLimits(id)
}

/** Returns the quotas of a tenant, and how much of each it uses. @throws 404 TENANT_NOT_FOUND */
export async function getQuotas(id: string) {
  await getTenantInfo(id)
  return describeQuotas(id)
}

/** Changes the quotas of a tenant. @throws 404 TENANT_NOT_FOUND */
export async function setQuotas(id: string, change: QuotaChange) {
  await quotas.setQuotas(id, change)
  return getQuotas(id)
}

type TenantInfo = Awaited<ReturnType<typeof getTenantInfo>>

async function describe(info: TenantInfo, backups: BackupState): Promise<OperatorTenant> {
  const lastRequest = tenancy.lastRequestTime(info.id)
  const damage = listDamagedSince(now() - DAY_MS).find(({ tenant }) => tenant === info.id)
  return {
    ...info,
    bytes: await measureDatabase(info),
    lastRequest: lastRequest === undefined ? null : toIsoString(lastRequest),
    damage: damage?.reason ?? null,
    ...backups,
  }
}
