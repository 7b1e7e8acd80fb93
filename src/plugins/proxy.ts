import { Elysia } from 'elysia'
import type { PublicCtx } from '../accounts/context'
import { reauthorizeSameOrigin, streamGuard } from '../accounts/guard'
import { toWorkOwner } from '../accounts/work-owner'
import { config } from '../config'
import { isPrivateNetworkAllowed } from '../connections/url-policy'
import { toBodyStream } from '../core/body-stream'
import { FairShare } from '../core/fair-share'
import { UpstreamUnreachable } from '../core/http-client'
import { fetchExternalStream, type UpstreamResponse } from '../core/http-stream'
import { chunksOf, watchPace } from '../core/incoming-body'
import { isRejection, Problem } from '../core/problem'
import { headersForPlugin, headersFromPlugin } from '../core/proxy-headers'
import { pinRequestId } from '../core/request-id'
import {
  clientIp,
  disableIdleTimeout,
  isHttps,
  requestAuthority,
  restoreIdleTimeout,
} from '../tenancy/client-connection'
import { assertOutgoingAllowed } from '../tenancy/outgoing-hold'
import type { Tenant } from '../tenancy/tenants'
import { recordSampled } from './health'
import { type CachedPlugin, findActivePlugin, findPluginByPath } from './plugin-cache'
import { signUserToken } from './secrets'

/** Limits the concurrent requests, so that endless streams leave room for others. */
const requestShare = new FairShare({ running: { perTenant: 1_000, perCaller: 500 } })

/** Returns how many requests of a tenant are being forwarded, including the responses that are being read. */
export const countForwardedRequests = (tenant: string) => requestShare.countOf(tenant).running

/** Forwards a request that matches no route of the platform to the plugin of its path. */
export const proxyRoutes = new Elysia({ tags: ['plugins'] })
  .use(streamGuard('plugin-calls'))
  .all('/*', ({ ctx, request }) => proxyRequest(ctx, request), { openThrottled: true, detail: { hide: true } })

/**
 * Forwards a request to a plugin; both bodies are streamed. The plugin learns who the caller is from `x-atoll-user`, a
 * token for this plugin alone. It never receives the caller's credentials.
 * @throws 401, 403, 404 ROUTE_NOT_FOUND, 409 OUTGOING_HELD, 502 PLUGIN_UNREACHABLE, 503, 504 PLUGIN_TIMEOUT
 */
async function proxyRequest(tenant: PublicCtx, request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url)
  const [, , segment = ''] = pathname.split('/')
  const id = await findPluginByPath(tenant, segment)
  const cached = id && (await findActivePlugin(tenant, id))
  const subPath = pathname.slice(`/api/${segment}`.length)
  if (!cached || isPathTraversal(subPath)) throw new Problem(404, 'ROUTE_NOT_FOUND', 'There is no such route.')
  await assertOutgoingAllowed(tenant)
  const { actor } = await reauthorizeSameOrigin(request, 'plugin-calls')
  const target = new URL(cached.plugin.proxyUrl!)
  target.pathname = target.pathname.replace(/\/$/, '') + subPath
  // The query of `proxyUrl`, such as a key, is kept.
  target.search = [target.search.slice(1), search.slice(1)].filter(Boolean).join('&')
  const headers = buildHeaders(tenant, request, cached, actor)
  disableIdleTimeout(request)
  return limitConcurrency(tenant, request, async () => {
    const body = request.body && toBodyStream(chunksOf(watchPace(request.body)))
    const init = { method: request.method, headers, body, signal: request.signal }
    const limits = {
      tenant: tenant.tenant,
      privateNetwork: isPrivateNetworkAllowed(),
      head: config.ATOLL_PLUGIN_TIMEOUT,
    }
    const response = await fetchExternalStream(target.href, init, limits).catch((error) =>
      throwProxyError(tenant, cached, request, error),
    )
    recordSampled(tenant, cached.plugin._id)
    return { body: startEventStream(response), status: response.status, headers: headersFromPlugin(response.headers) }
  })
}

const MAX_DECODINGS = 5

/**
 * Returns whether a path may lead above its start on a server that decodes it repeatedly, treats `\` as `/`, or ignores
 * what follows a `;` in a segment.
 */
function isPathTraversal(path: string): boolean {
  let decoded = path
  for (let rounds = 0; /%(2e|2f|5c|3b|25)/i.test(decoded); rounds++) {
    if (rounds === MAX_DECODINGS) return true
    decoded = decoded.replace(/%(2e|2f|5c|3b|25)/gi, decodeURIComponent)
  }
  return decoded.split(/[/\\]/).some((segment) => /^\.\.?$/.test(segment.replace(/;.*/s, '')))
}

function buildHeaders(
  { tenant }: Tenant,
  request: Request,
  { plugin, secrets }: CachedPlugin,
  actor: PublicCtx['actor'],
) {
  const headers = headersForPlugin(request.headers)
  headers.set('x-atoll-tenant', tenant)
  headers.set('x-request-id', pinRequestId(request))
  headers.set('x-forwarded-for', clientIp(request))
  headers.set('x-forwarded-host', requestAuthority(request))
  headers.set('x-forwarded-proto', isHttps(request) ? 'https' : 'http')
  if (actor) {
    const { user: sub, roles, workspace, impersonator } = actor
    const claims = { tid: tenant, sub, roles, workspace, ...(impersonator && { impersonator }) }
    headers.set('x-atoll-user', signUserToken(plugin._id, secrets[0]!, claims))
  }
  return headers
}

function throwProxyError(tenant: Tenant, { plugin }: CachedPlugin, { signal }: Request, error: unknown): never {
  if (!(error instanceof UpstreamUnreachable)) throw error
  // The body of the caller could not be read.
  if (isRejection(error.more.cause)) throw error.more.cause
  if (signal.aborted) throw new Problem(400, 'CALLER_GONE', 'The client closed the request.')
  const isTimeout = error.reason === 'timeout'
  const message = isTimeout ? 'The plugin did not answer in time.' : 'The plugin could not be reached.'
  recordSampled(tenant, plugin._id, message)
  if (isTimeout) throw new Problem(504, 'PLUGIN_TIMEOUT', `${message} Try again later.`)
  throw new Problem(502, 'PLUGIN_UNREACHABLE', `${message} Try again later.`, { cause: error.more.cause })
}

const openStreams = new Set<() => void>()

/** Ends all event streams, which would otherwise never end; their clients reconnect to another process. */
export function closeStreams() {
  for (const end of openStreams) end()
}

/** Bun sends a head only with the first bytes of the body, so a stream starts with a comment, which clients ignore. */
function startEventStream({ body, headers }: UpstreamResponse) {
  const isEventStream = headers.get('content-type')?.startsWith('text/event-stream') && !headers.has('content-encoding')
  if (!(body instanceof ReadableStream) || !isEventStream) return body
  let close = () => {}
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(':\n\n'))
      close = () => controller.terminate()
    },
  })
  openStreams.add(close)
  body
    .pipeTo(writable)
    .catch(() => {}) // the client or the plugin has gone
    .finally(() => openStreams.delete(close))
  return readable
}

/** Counts a request until its answer has been read. @throws 503 BUSY */
async function limitConcurrency(
  ctx: PublicCtx,
  request: Request,
  callPlugin: () => Promise<UpstreamResponse>,
): Promise<Response> {
  const releaseShare = requestShare.reserve(toWorkOwner(ctx, request))
  const release = () => {
    releaseShare()
    restoreIdleTimeout(request)
  }
  try {
    const { body, ...head } = await callPlugin()
    if (body instanceof ReadableStream) return new Response(notifyOnEnd(body, release), head)
    release()
    return new Response(body, head)
  } catch (error) {
    release()
    throw error
  }
}

/** Returns a stream that calls `onEnd` once, when it ends, fails or is canceled. */
function notifyOnEnd(body: ReadableStream<Uint8Array>, onEnd: () => void) {
  const reader = body.getReader()
  let hasEnded = false
  // A cancellation also ends the read that is waiting.
  const end = () => {
    if (!hasEnded) onEnd()
    hasEnded = true
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done: isDone, value } = await reader.read()
          if (value) return controller.enqueue(value)
          if (isDone) controller.close()
        } catch {
          // This cuts the connection. Given a reason, Bun would print its stack.
          controller.error()
        }
        end()
      },
      async cancel(reason) {
        end()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
