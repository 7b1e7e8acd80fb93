import type { PublicCtx } from '../accounts/context'
import { Problem } from '../core/problem'
import type { IntegrationRow } from './tables'

type Rules = Pick<IntegrationRow, 'guest' | 'roles' | 'workspaceRoles'>

/** Whether somebody may run an integration: one of its roles in the tenant or in the active workspace will do. */
export function mayRun({ actor }: Pick<PublicCtx, 'actor'>, { guest, roles, workspaceRoles }: Rules): boolean {
  if (guest) return true
  if (!actor) return false
  if (actor.privileged || (!roles.length && !workspaceRoles.length)) return true
  const hasRole = (wanted: string[], own: string[]) => wanted.some((role) => role === '*' || own.includes(role))
  return hasRole(roles, actor.roles) || (!!actor.workspace && hasRole(workspaceRoles, actor.workspace.roles))
}

/** @throws 401 for strangers, 403 */
export function assertMayRun(ctx: Pick<PublicCtx, 'actor'>, rules: Rules) {
  if (mayRun(ctx, rules)) return
  if (!ctx.actor) throw new Problem(401, 'UNAUTHENTICATED', 'Sign in first, or send an API token.')
  throw new Problem(403, 'FORBIDDEN', 'Only users with a role that this integration names may use it.')
}
