import type { Ctx } from '../accounts/context'
import { emit } from '../jobs/outbox'
import type { Tx } from '../storage/port'

type WorkspaceEvent =
  | { kind: 'workspace'; eventName: 'workspace-created' | 'workspace-deleted' }
  | { kind: 'invite'; eventName: 'invite-created' | 'invite-accepted' | 'invite-declined' }

/** Writes down what the caller did with a workspace, in the transaction in which it is done. */
export const emitWorkspaceEvent = (
  ctx: Ctx,
  tx: Tx,
  workspace: string,
  event: WorkspaceEvent,
  metadata: Record<string, unknown>,
) => emit(ctx, tx, { source: 'accounts', ...event, metadata, user: ctx.actor.user, workspace })
