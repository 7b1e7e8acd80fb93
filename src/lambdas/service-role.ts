import type { Actor } from '../accounts/actors'
import type { PublicCtx } from '../accounts/context'
import { isPrivileged } from '../accounts/permissions'
import type { RunnableLambda } from './lambda-cache'

/**
 * Returns the context of a run, with the rights of the caller, or of the lambda's `serviceRole`. With a `serviceRole`,
 * the caller's roles do not count. What the lambda creates still belongs to the caller, or to the lambda without a
 * caller.
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
    ...(actor?.token && { token: actor.token }),
  }
  return { ...tenant, actor: service }
}
