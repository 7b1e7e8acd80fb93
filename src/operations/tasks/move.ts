import { type MoveResult, prepareMove } from '../../tenancy/move'
import type { TaskKind } from './task-kind'

/** Takes a tenant to another home while it is served. */
export const move: TaskKind<{ to: string }, MoveResult> = {
  stoppedMessage:
    'The server was stopped during the move. The tenant is complete in one place, and served from there. Start the move again to finish it.',
  uses: (tenant) => ({ reads: [], changes: [tenant] }),
  prepare: (tenant, { to }) => prepareMove(tenant, to),
}
