import { and, eq } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { missing, Problem } from '../../core/problem'
import type { Db } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { Actor } from '../actors'
import type { Ctx } from '../guard'
import { settingsOf } from '../settings'
import { members, workspaces } from './tables'

export type WorkspaceRow = typeof workspaces.$inferSelect

/** A workspace, and what somebody is in it. Admins of the tenant reach every workspace, and administer it. */
export type Reached = { workspace: WorkspaceRow; roles: string[]; administers: boolean }

type Who = Pick<Actor, 'user' | 'privileged'> & Partial<Pick<Actor, 'token' | 'workspace'>>

/** @throws 404 for who is no member */
export async function reach(db: Db, actor: Who, id: string): Promise<Reached> {
  if (isElsewhere(actor, id)) missing('workspace')
  const own = and(eq(members.workspace, workspaces._id), eq(members.user, actor.user))
  const found = await db
    .select({ workspace: workspaces, roles: members.roles })
    .from(workspaces)
    .leftJoin(members, own)
    .where(eq(workspaces._id, id))
    .get()
  if (!found || !(found.roles || actor.privileged)) return missing('workspace')
  const roles = found.roles ?? []
  return { workspace: found.workspace, roles, administers: actor.privileged || roles.includes('admin') }
}

/** The same for who administers it. @throws 404, or 403 for other members */
export async function administered(db: Db, actor: Who, id: string): Promise<Reached> {
  const found = await reach(db, actor, id)
  if (!found.administers) throw new Problem(403, 'FORBIDDEN', 'Only those who administer this workspace may do this.')
  return found
}

/** For a token that was made for one workspace there are no others. */
export const isElsewhere = ({ token, workspace }: Pick<Who, 'token' | 'workspace'>, id: string) =>
  !!token?.bound && workspace?._id !== id

/** The same as a condition of those that are listed; nothing for whoever knows several. */
export const within = ({ token, workspace }: Pick<Who, 'token' | 'workspace'>, column: SQLiteColumn) =>
  token?.bound ? eq(column, workspace!._id) : undefined

/** @throws 403 for a token that was made for one workspace */
export function refuseBound({ actor }: Ctx) {
  if (actor.token?.bound)
    throw new Problem(403, 'FORBIDDEN', 'This API token was made for one workspace, and knows no other.')
}

/** @throws 403 where the tenant has workspaces switched off */
export async function refuseInactive(tenant: Tenant) {
  if (!(await settingsOf(tenant, 'workspace-configuration')).isActive)
    throw new Problem(403, 'WORKSPACES_INACTIVE', 'Workspaces are switched off here. Ask an administrator.')
}
