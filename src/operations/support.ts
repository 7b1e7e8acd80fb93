import { and, eq, lt } from 'drizzle-orm'
import { issueOneTimeToken } from '../accounts/one-time-tokens'
import { sessions, users } from '../accounts/tables'
import { OPERATOR_ROLE, registerUncountedUser } from '../accounts/users/users'
import { HOUR_MS, now, toIsoString } from '../core/clock'
import { generateToken } from '../core/crypto'
import type { HousekeepingTask } from '../jobs/housekeeping'
import { emit } from '../jobs/outbox'
import { writeInvalidating } from '../tenancy/cache'
import { recordOperatorEvent } from '../tenancy/operator-events'
import { registry } from '../tenancy/registry'
import { findSupportUser, replaceSupportUser } from '../tenancy/support-user'
import { getTenant, type Tenant } from '../tenancy/tenants'
import { toAdminLink } from './admin-link'

const SUPPORT_SESSION_MS = HOUR_MS

/**
 * Returns a link that signs the operator in to a tenant once, as an administrator of their own whom its users see. The
 * tenant gets an event before, so it is recorded whether or not the link is used.
 * @throws 404 TENANT_NOT_FOUND, 403 TENANT_SUSPENDED
 */
export async function openSupport(id: string, reason: string, request: Request) {
  const tenant = await getTenant(id)
  const user = await ensureSupportUser(tenant)
  await registry.write((tx) => recordOperatorEvent(tx, 'support-opened', id, { reason }))
  const token = await tenant.write(async (tx) => {
    const description = 'The operator of this installation opened this tenant for support.'
    const event = {
      source: 'accounts',
      kind: 'support',
      eventName: 'support-opened',
      description,
      metadata: { reason },
    }
    await emit(tenant, tx, { ...event, user })
    return issueOneTimeToken(tx, 'signinLink', user)
  })
  return { link: await toAdminLink(request, id, 'link', token) }
}

/** Returns the operator's user. The registry knows them, because users may choose any name. */
async function ensureSupportUser(tenant: Tenant): Promise<string> {
  const before = await findSupportUser(tenant.tenant)
  if (before && (await isAdmin(tenant, before))) return before
  const username = `operator-${generateToken().replace(/\W/g, '').slice(0, 6).toLowerCase()}`
  const fields = { username, fullName: 'Operator of this installation' }
  const { _id } = await registerUncountedUser(tenant, fields, ['admin', OPERATOR_ROLE])
  const chosen = await replaceSupportUser(tenant.tenant, before, _id)
  // Another request made one meanwhile.
  if (chosen !== _id) await tenant.write((tx) => tx.delete(users).where(eq(users._id, _id)))
  return chosen
}

/** Admins of the tenant may have deleted the user, or taken the role away. */
async function isAdmin({ db }: Tenant, user: string): Promise<boolean> {
  const row = await db.select({ roles: users.roles }).from(users).where(eq(users._id, user)).get()
  return !!row?.roles.includes('admin')
}

/** Ends sessions of the operator in a tenant that began more than an hour ago. */
export const endSupportSessions: HousekeepingTask = async (tenant) => {
  const user = await findSupportUser(tenant.tenant)
  if (!user) return
  const isOver = and(eq(sessions.user, user), lt(sessions.created, toIsoString(now() - SUPPORT_SESSION_MS)))
  if (await tenant.db.$count(sessions, isOver))
    await writeInvalidating(tenant, 'actors', (tx) => tx.delete(sessions).where(isOver).run())
}
