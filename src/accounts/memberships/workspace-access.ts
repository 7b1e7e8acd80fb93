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

/** A workspace, and an actor's roles in it. Admins of the tenant can access and administer every workspace. */
export type WorkspaceAccess = { workspace: WorkspaceRow; roles: string[]; administers: boolean }

type WorkspaceActor = Pick<Actor, 'user' | 'privileged'> & Partial<Pick<Actor, 'token' | 'workspace'>>

/**
 * Returns a workspace and the actor's roles in it.
 * @throws 404 WORKSPACE_NOT_FOUND when the actor cannot access it
 */
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

/**
 * Returns a workspace that the actor administers.
 * @throws 404 WORKSPACE_NOT_FOUND when the actor cannot access it, 403 FORBIDDEN for other members
 */
export async function requireWorkspaceAdmin(db: Db, actor: WorkspaceActor, id: string): Promise<WorkspaceAccess> {
  const access = await getWorkspaceAccess(db, actor, id)
  if (!access.administers) throw new Problem(403, 'FORBIDDEN', 'Only admins of this workspace may do this.')
  return access
}

/** Returns whether the actor's token is bound to another workspace than this. */
export const isOtherWorkspace = ({ token, workspace }: Pick<WorkspaceActor, 'token' | 'workspace'>, id: string) =>
  !!token?.bound && workspace?._id !== id

/** Returns the condition that limits a list to the workspace of a bound token, or undefined for other actors. */
export const boundWorkspaceCondition = (
  { token, workspace }: Pick<WorkspaceActor, 'token' | 'workspace'>,
  column: SQLiteColumn,
) => (token?.bound ? eq(column, workspace!._id) : undefined)

/** @throws 403 FORBIDDEN for a token that is bound to one workspace */
export function assertNotBound({ actor }: Ctx) {
  if (actor.token?.bound) throw new Problem(403, 'FORBIDDEN', 'This API token is limited to one workspace.')
}

/** @throws 403 WORKSPACES_INACTIVE where the tenant has disabled workspaces */
export async function assertWorkspacesActive(tenant: Tenant) {
  if (!(await getSettings(tenant, workspaceSettings)).isActive)
    throw new Problem(403, 'WORKSPACES_INACTIVE', 'Workspaces are disabled. Ask an administrator.')
}
