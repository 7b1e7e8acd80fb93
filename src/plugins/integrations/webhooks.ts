import { type OpenCtx, readmitSameSite } from '../../accounts/guard'
import { throttling } from '../../accounts/guests'
import { config } from '../../config'
import { readText } from '../../core/body'
import { missing, Problem } from '../../core/problem'
import { success } from '../../core/shapes'
import { enqueue } from '../../jobs/queue'
import { Failure } from '../../jobs/work'
import { waitsLong } from '../../tenancy/caller'
import { sandboxPage } from '../headers'
import { askedBy } from '../lambdas/asked'
import { refuseUnlessMayRun } from './permission'
import { activeNamed, perform, runOf, targetOf } from './running'

/** Providers of payments and others send many at once, and come again when they are turned away. */
const throttle = throttling(50, 5_000, 'Too many calls by guests.')

/**
 * Runs an integration for whoever calls it, and answers what its target does. HEAD only tells whether somebody listens.
 * @throws 401, 403, 404, 413, 429, 502
 */
export async function call(tenant: OpenCtx, id: string, request: Request): Promise<Response> {
  const row = await activeNamed(tenant.db, id)
  if (row?.triggerKind !== 'webhook') return missing('webhook')
  const ctx = await readmitSameSite(request, 'webhooks').catch((error) => asGuest(error, row.guest, tenant))
  refuseUnlessMayRun(ctx, row)
  if (request.method === 'HEAD') return new Response()
  throttle(ctx, row._id, request)
  const text = (await readText(request, config.ATOLL_BODY_LIMIT)) ?? ''
  const asked = { ...askedBy(ctx, request, text), ...whoIs(ctx) }
  if (targetOf(row).later) {
    await ctx.write((tx) => enqueue(ctx, tx, runOf({ integration: row._id, depth: 1, asked })))
    return Response.json(success, { status: 202 })
  }
  waitsLong(request)
  const occasion = { _id: Bun.randomUUIDv7() as string, trigger: 'webhook' as const, asked, request }
  const response = await perform(ctx, row, occasion, 1).catch(refused)
  sandboxPage(response.headers)
  return response
}

/** Where guests are welcome, a credential that is no good here is none: it may be for whoever the call is passed on to. */
function asGuest(error: unknown, welcome: boolean, tenant: OpenCtx): OpenCtx {
  if (welcome && error instanceof Problem && [401, 403].includes(error.status)) return tenant
  throw error
}

const whoIs = ({ actor }: OpenCtx) => ({
  user: actor ? { _id: actor.user, roles: actor.roles } : null,
  workspace: actor?.workspace ?? null,
})

const refused = (error: unknown): never => {
  if (error instanceof Failure) throw new Problem(502, 'TARGET_FAILED', error.message)
  throw error
}
