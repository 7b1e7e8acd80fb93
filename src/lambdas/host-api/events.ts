import { hasPermission, scopesAllow } from '../../accounts/permissions'
import { requireStorable } from '../../core/body'
import { Problem } from '../../core/problem'
import { parseWithShape } from '../../core/shapes'
import * as events from '../../events/events'
import { NewEvent } from '../../events/shapes'
import type { HostCall } from './host-api'

/** Creates an event for callers who may create events at `/api/events`. @throws 400, 401, 403 */
export const emitEvent: HostCall = async ({ ctx }, event) => {
  const { actor } = ctx
  if (!actor) throw new Problem(401, 'UNAUTHENTICATED', 'Emitting events requires an authenticated caller.')
  if (!hasPermission(actor, 'teller') || !scopesAllow(actor.scopes, 'events', 'write'))
    throw new Problem(403, 'FORBIDDEN', 'Missing permission to emit events.')
  return events.create({ ...ctx, actor }, parseWithShape(NewEvent, requireStorable(event)))
}
