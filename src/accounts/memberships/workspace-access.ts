import { and, eq } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { notFound, Problem } from '../../core/problem'
import { getSettings } from '../../platform/settings/tenant-settings'
import type { Db } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { Actor } from '../actors'
import type { Ctx } from '../context'
import { members, workspaces } from './tables'
import { workspaceSettings } from './workspace-settings'

export type WorkspaceRow = typeof workspaces.$inferSelect

/** A workspace, and what somebody is in it. Admins of the tenant reach every workspace, and administer it. */
export type WorkspaceAccess = { workspace: WorkspaceRow; roles: string[]; administers: boolean }

type WorkspaceActor = Pick<Actor, 'user' | 'privileged'> & Partial<Pick<Actor, 'token' | 'workspace'>>

/** @throws 404 for who is no member */
export async function getWorkspaceAccess(db: Db, actor: WorkspaceActor, id: string): Promise<WorkspaceAccess> {
  if (isOtherWorkspace(actor, id)) notFound('workspace')
  const ownMembership = and(eq(members.workspace, workspaces._id), eq(members.user, actor.user))
  const row = await db
    .select({ workspace: workspaces, roles: members.roles })
    .from(workspaces)
    .leftJoin(members, ownMembership)
    .where(eq(workspaces._id, id))
    .get()
  if (!row || !(row.roles || actor.privileged)) return notFound('workspace')
  const roles = row.roles ?? []
  return { workspace: row.workspace, roles, administers: actor.privileged || roles.includes('admin') }
}

/** The same for who administers it. @throws 404, or 403 for other members */
export async function requireWorkspaceAdmin(db: Db, actor: WorkspaceActor, id: string): Promise<WorkspaceAccess> {
  const access = await getWorkspaceAccess(db, actor, id)
  if (!access.administers) throw new Problem(403, 'FORBIDDEN', 'Only admins of this workspace may do this.')
  return access
}

/** For a token that was made for one workspace there are no others. */
export const isOtherWorkspace = ({ token, workspace }: Pick<WorkspaceActor, 'token' | 'workspace'>, id: string) =>
  !!token?.bound && workspace?._id !== id

/** The same as a condition of those that are listed; nothing for whoever knows several. */
export const boundWorkspaceCondition = (
  { token, workspace }: Pick<WorkspaceActor, 'token' | 'workspace'>,
  column: SQLiteColumn,
) => (token?.bound ? eq(column, workspace!._id) : undefined)

/** @throws 403 for a token that was made for one workspace */
export function assertNotBound({ actor }: Ctx) {
  if (actor.token?.bound) throw new Problem(403, 'FORBIDDEN', 'This API token is limited to one workspace.')
}

/** @throws 403 where the tenant has workspaces switched off */
export async function assertWorkspacesActive(tenant: Tenant) {
  if (!(await getSettings(tenant, workspaceSettings)).isActive)
    throw new Problem(403, 'WORKSPACES_INACTIVE', 'Workspaces are disabled. Ask an administrator.')
}
