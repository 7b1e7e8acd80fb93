import type { Ctx } from '../accounts/context'
import { now, toIsoString } from '../core/clock'
import { FAILURE_MESSAGES, UpstreamUnreachable } from '../core/http-client'
import { disableIdleTimeout } from '../tenancy/client-connection'
import { NotConnected } from './kinds/connection-kind'
import { type KindName, kinds } from './kinds/index'
import { getConnection, withSecrets } from './resolver'
import type { ConnectionDraft, Status } from './shapes'
import { parseDraft } from './validation'

type CheckedConnection = { tenant: string; kind: KindName; metadata: unknown; authentication: unknown }

/** Returns whether the server of a connection accepts it now. @throws 404, 503 when too many calls are under way */
export async function checkConnection(ctx: Ctx, id: string, request: Request): Promise<Status> {
  return runCheck(await withSecrets(ctx, await getConnection(ctx.db, id)), request)
}

/** Returns whether the server of a connection that is not stored yet accepts it. @throws 400, 503 */
export const checkDraft = async ({ tenant }: Ctx, draft: ConnectionDraft, request: Request): Promise<Status> =>
  runCheck({ tenant, ...parseDraft(draft) }, request)

async function runCheck({ kind, ...values }: CheckedConnection, request: Request): Promise<Status> {
  // Otherwise a client connection that is idle for ten seconds would be cut.
  disableIdleTimeout(request)
  try {
    return { status: 'connected', message: await kinds[kind].check(values), checkedAt: toIsoString(now()) }
  } catch (error) {
    return { status: 'failed', message: describeFailure(error), checkedAt: toIsoString(now()) }
  }
}

function describeFailure(error: unknown): string {
  if (error instanceof NotConnected) return error.message
  if (error instanceof UpstreamUnreachable) return FAILURE_MESSAGES[error.reason]
  throw error
}
