import type { Static, TSchema } from '@sinclair/typebox'
import type { Ctx } from '../../../accounts/guard'
import { may, within } from '../../../accounts/permissions'
import { keepable } from '../../../core/body'
import { Problem } from '../../../core/problem'
import { fitting } from '../../../core/shapes'
import type { Call } from './calls'

/** Tells what has happened by `tell`, for those who may tell it at `/api/events`. */
export const telling =
  <Shape extends TSchema>(shape: Shape, tell: (ctx: Ctx, event: Static<Shape>) => Promise<unknown>): Call =>
  async ({ ctx }, event) => {
    const { actor } = ctx
    if (!actor) throw new Problem(401, 'UNAUTHENTICATED', 'Emitting events requires an authenticated caller.')
    if (!may(actor, 'teller') || !within(actor.scopes, 'events', 'write'))
      throw new Problem(403, 'FORBIDDEN', 'Missing permission to emit events.')
    return tell({ ...ctx, actor }, fitting(shape, keepable(event)))
  }
