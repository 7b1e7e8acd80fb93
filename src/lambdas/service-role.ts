import type { Actor } from '../accounts/actors'
import type { PublicCtx } from '../accounts/context'
import { isPrivileged } from '../accounts/permissions'
import type { RunnableLambda } from './lambda-cache'

/**
 * With whose rights a lambda asks: its caller's, or those of the role that it names. With a role of its own, its caller's
 * roles count for nothing; what it makes is the caller's nevertheless, or else its own.
 */
export function toRunContext(
  { actor, ...tenant }: PublicCtx,
  { _id, serviceRole }: Pick<RunnableLambda, '_id' | 'serviceRole'>,
) {
  if (serviceRole === null) return { ...tenant, actor }
  const roles = [serviceRole]
  const service: Actor = {
    ...{ user: actor?.user ?? _id, roles, privileged: isPrivileged(roles), via: actor?.via ?? 'bearer', scopes: [] },
    workspace: actor?.workspace ? { ...actor.workspace, roles: [] } : null,
  }
  return { ...tenant, actor: service }
}
