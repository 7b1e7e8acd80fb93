import type { Static, TSchema } from '@sinclair/typebox'
import type { Ctx } from '../../accounts/guard'
import { hasPermission, scopesAllow } from '../../accounts/permissions'
import { requireStorable } from '../../core/body'
import { Problem } from '../../core/problem'
import { parseWithShape } from '../../core/shapes'
import type { HostCall } from './host-api'

/** Tells what has happened by `tell`, for those who may tell it at `/api/events`. */
export const createEmitCall =
  <Shape extends TSchema>(shape: Shape, emitEvent: (ctx: Ctx, event: Static<Shape>) => Promise<unknown>): HostCall =>
  async ({ ctx }, event) => {
    const { actor } = ctx
    if (!actor) throw new Problem(401, 'UNAUTHENTICATED', 'Emitting events requires an authenticated caller.')
    if (!hasPermission(actor, 'teller') || !scopesAllow(actor.scopes, 'events', 'write'))
      throw new Problem(403, 'FORBIDDEN', 'Missing permission to emit events.')
    return emitEvent({ ...ctx, actor }, parseWithShape(shape, requireStorable(event)))
  }
