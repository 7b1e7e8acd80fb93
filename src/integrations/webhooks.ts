import type { PublicCtx } from '../accounts/context'
import { reauthorizeSameOrigin } from '../accounts/guard'
import { createGuestRateLimit } from '../accounts/guest-rate-limit'
import { config } from '../config'
import { readText } from '../core/body'
import { notFound, Problem } from '../core/problem'
import { sandboxPage } from '../core/proxy-headers'
import { success } from '../core/shapes'
import { enqueue } from '../jobs/queue'
import { JobError } from '../jobs/worker'
import { httpToLambdaRequest } from '../lambdas/request'
import { disableIdleTimeout } from '../tenancy/client-connection'
import { assertMayRun } from './permission'
import { buildRunJob, findActive, runTarget } from './run-job'
import { targets } from './targets/index'

/** Payment providers and others send many webhooks at once, and retry rejected ones. */
const throttle = createGuestRateLimit(50, 5_000, 'Too many anonymous calls.')

/**
 * Runs an integration for a caller, and returns the response of its target. HEAD only checks that the webhook exists.
 * @throws 401, 403, 404 WEBHOOK_NOT_FOUND, 413, 429, 502
 */
export async function callWebhook(tenant: PublicCtx, id: string, request: Request): Promise<Response> {
  const row = await findActive(tenant.db, id)
  if (row?.triggerKind !== 'webhook') return notFound('webhook')
  const ctx = await reauthorizeSameOrigin(request, 'webhooks').catch((error) =>
    fallBackToGuest(error, row.guest, tenant),
  )
  assertMayRun(ctx, row)
  if (request.method === 'HEAD') return new Response()
  throttle(ctx, row._id, request)
  const text = (await readText(request, config.ATOLL_BODY_LIMIT)) ?? ''
  const input = { ...httpToLambdaRequest(ctx, request, text), ...toCaller(ctx) }
  if (targets[row.targetKind].isBackground) {
    await ctx.write((tx) => enqueue(ctx, tx, buildRunJob({ integration: row._id, depth: 1, asked: input })))
    return Response.json(success, { status: 202 })
  }
  disableIdleTimeout(request)
  const invocation = { _id: Bun.randomUUIDv7() as string, trigger: 'webhook' as const, input, request }
  const response = await runTarget(ctx, row, invocation, 1).catch(throwTargetFailure)
  sandboxPage(response.headers)
  return response
}

/** A webhook open to anonymous callers ignores an invalid credential: it may be meant for the target. */
function fallBackToGuest(error: unknown, isGuestAllowed: boolean, tenant: PublicCtx): PublicCtx {
  if (isGuestAllowed && error instanceof Problem && [401, 403].includes(error.status)) return tenant
  throw error
}

const toCaller = ({ actor }: PublicCtx) => ({
  user: actor ? { _id: actor.user, roles: actor.roles } : null,
  workspace: actor?.workspace ?? null,
})

const throwTargetFailure = (error: unknown): never => {
  if (error instanceof JobError) throw new Problem(502, 'TARGET_FAILED', error.message)
  throw error
}
