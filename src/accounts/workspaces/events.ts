import { emit } from '../../jobs/outbox'
import type { Tx } from '../../storage/port'
import type { Ctx } from '../guard'

type Happening =
  | { kind: 'workspace'; eventName: 'workspace-created' | 'workspace-deleted' }
  | { kind: 'invite'; eventName: 'invite-created' | 'invite-accepted' | 'invite-declined' }

/** Writes down what the caller did with a workspace, in the transaction in which it is done. */
export const tell = (ctx: Ctx, tx: Tx, workspace: string, happening: Happening, metadata: Record<string, unknown>) =>
  emit(ctx, tx, { source: 'accounts', ...happening, metadata, user: ctx.actor.user, workspace })
