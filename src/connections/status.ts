import type { Ctx } from '../accounts/context'
import { now, toIsoString } from '../core/clock'
import { FAILURE_MESSAGES, UpstreamUnreachable } from '../core/http-client'
import { disableIdleTimeout } from '../tenancy/client-connection'
import { type ConnectionKind, NotConnected } from './kinds/connection-kind'
import { type KindName, kinds, type ResolvedConnection } from './kinds/index'
import { getConnection, withSecrets } from './resolver'
import type { ConnectionDraft, Status } from './shapes'
import { parseDraft } from './validation'

type CheckInput = Pick<ResolvedConnection, 'tenant' | 'kind' | 'metadata' | 'authentication'>

/** Whether a connection's server takes us now. @throws 404 */
export async function checkConnection(ctx: Ctx, id: string, request: Request): Promise<Status> {
  return runCheck(await withSecrets(ctx, await getConnection(ctx.db, id)), request)
}

/** The same before it is kept. @throws 400 */
export const checkDraft = async ({ tenant }: Ctx, draft: ConnectionDraft, request: Request): Promise<Status> =>
  runCheck({ tenant, ...parseDraft(draft) } as CheckInput, request)

async function runCheck({ kind, ...input }: CheckInput, request: Request): Promise<Status> {
  // A connection on which nothing moves for ten seconds would be cut.
  disableIdleTimeout(request)
  const { check } = kinds[kind as KindName] as ConnectionKind<never, never>
  try {
    return { status: 'connected', message: await check(input as never), checkedAt: toIsoString(now()) }
  } catch (error) {
    return { status: 'failed', message: describeFailure(error), checkedAt: toIsoString(now()) }
  }
}

function describeFailure(error: unknown): string {
  if (error instanceof NotConnected) return error.message
  if (error instanceof UpstreamUnreachable) return FAILURE_MESSAGES[error.reason]
  throw error
}
