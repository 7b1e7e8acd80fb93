import { Elysia } from 'elysia'
import { type OpenCtx, readmitSameSite, streamGuard } from '../accounts/guard'
import { config } from '../config'
import { Unreachable } from '../core/outside'
import { Problem } from '../core/problem'
import { keptNameOf } from '../core/request-name'
import { type Answered, outsideAsItComes } from '../core/streaming'
import { Busy } from '../storage/errors'
import { addressOf, authorityOf, isSecure, waitsLong, waitsNoLonger } from '../tenancy/caller'
import type { Tenant } from '../tenancy/tenants'
import { privateNetwork } from './addresses'
import { headersForPlugin, headersFromPlugin } from './headers'
import { noteNowAndThen } from './health'
import { type Known, pluginAt, pluginNamed } from './known'
import { tokenFor } from './secrets'

const MOST = 1_000 // requests of one tenant at a time
const running = new Map<string, number>()

/** What no route of ours is for belongs to the plugin of that path. */
export const proxyRoutes = new Elysia({ tags: ['plugins'] })
  .use(streamGuard('plugin-calls'))
  .all('/*', ({ ctx, request }) => passOn(ctx, request), { open: true, detail: { hide: true } })

/**
 * Has a plugin answer a request, with its body and its answer passed on as they come. It learns who asks by `x-atoll-user`,
 * a token for it alone, and never by what they showed us.
 * @throws 404 ROUTE_NOT_FOUND, 401, 403, 502 PLUGIN_UNREACHABLE, 503, 504 PLUGIN_TIMEOUT
 */
async function passOn(tenant: OpenCtx, request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url)
  const [, , segment = ''] = pathname.split('/')
  const id = await pluginAt(tenant, segment)
  const known = id && (await pluginNamed(tenant, id))
  const below = pathname.slice(`/api/${segment}`.length)
  if (!known || climbs(below)) throw new Problem(404, 'ROUTE_NOT_FOUND', 'There is no such route.')
  const { actor } = await readmitSameSite(request, 'plugin-calls')
  const target = new URL(known.plugin.proxyUrl!)
  target.pathname = target.pathname.replace(/\/$/, '') + below
  // A query that is there already, such as a key, stays.
  target.search = [target.search.slice(1), search.slice(1)].filter(Boolean).join('&')
  const headers = headersFor(tenant, request, known, actor)
  waitsLong(request)
  return counted(tenant, request, async () => {
    const asked = { method: request.method, headers, body: request.body, signal: request.signal }
    const reach = { tenant: tenant.tenant, privateNetwork: privateNetwork(), head: config.ATOLL_PLUGIN_TIMEOUT }
    const answer = await outsideAsItComes(target.href, asked, reach).catch((error) =>
      refuse(tenant, known, request, error),
    )
    noteNowAndThen(tenant, known.plugin._id)
    return { body: begun(answer), status: answer.status, headers: headersFromPlugin(answer.headers) }
  })
}

const DECODINGS = 5

/**
 * Whether a path may lead above where it begins for a server that decodes it, however often, takes `\` for `/`, or leaves
 * out what follows a `;` in a segment.
 */
function climbs(path: string): boolean {
  let decoded = path
  for (let times = 0; /%(2e|2f|5c|3b|25)/i.test(decoded); times++) {
    if (times === DECODINGS) return true
    decoded = decoded.replace(/%(2e|2f|5c|3b|25)/gi, decodeURIComponent)
  }
  return decoded.split(/[/\\]/).some((segment) => /^\.\.?$/.test(segment.replace(/;.*/s, '')))
}

function headersFor({ tenant }: Tenant, request: Request, { plugin, secrets }: Known, actor: OpenCtx['actor']) {
  const headers = headersForPlugin(request.headers)
  headers.set('x-atoll-tenant', tenant)
  headers.set('x-request-id', keptNameOf(request))
  headers.set('x-forwarded-for', addressOf(request))
  headers.set('x-forwarded-host', authorityOf(request))
  headers.set('x-forwarded-proto', isSecure(request) ? 'https' : 'http')
  if (actor) {
    const { user: sub, roles, workspace, impersonator } = actor
    const claims = { tid: tenant, sub, roles, workspace, ...(impersonator && { impersonator }) }
    headers.set('x-atoll-user', tokenFor(plugin._id, secrets[0]!, claims))
  }
  return headers
}

function refuse(tenant: Tenant, { plugin }: Known, { signal }: Request, error: unknown): never {
  if (!(error instanceof Unreachable)) throw error
  if (signal.aborted) throw new Problem(400, 'CALLER_GONE', 'You did not wait for the answer.')
  const late = error.why === 'timeout'
  const message = late ? 'The plugin did not answer in time.' : 'The plugin could not be reached.'
  noteNowAndThen(tenant, plugin._id, message)
  if (late) throw new Problem(504, 'PLUGIN_TIMEOUT', `${message} Try again later.`)
  throw new Problem(502, 'PLUGIN_UNREACHABLE', `${message} Try again later.`, { cause: error.more.cause })
}

const listeners = new Set<() => void>()

/** Ends all streams of events, so that who listens comes again elsewhere: they would go on for as long as we let them. */
export function endListening() {
  for (const end of listeners) end()
}

/** Bun sends a head only with the first of its body, so events begin with a comment, which clients overlook. */
function begun({ body, headers }: Answered) {
  const events = headers.get('content-type')?.startsWith('text/event-stream') && !headers.has('content-encoding')
  if (!(body instanceof ReadableStream) || !events) return body
  let end = () => {}
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(':\n\n'))
      end = () => controller.terminate()
    },
  })
  listeners.add(end)
  body
    .pipeTo(writable)
    .catch(() => {})
    .finally(() => listeners.delete(end))
  return readable
}

/** Whoever opens streams without end leaves room to others. @throws 503 */
async function counted({ tenant }: Tenant, request: Request, work: () => Promise<Answered>): Promise<Response> {
  const count = running.get(tenant) ?? 0
  if (count >= MOST) throw new Busy()
  running.set(tenant, count + 1)
  const done = () => {
    const left = (running.get(tenant) ?? 1) - 1
    if (left) running.set(tenant, left)
    else running.delete(tenant)
    waitsNoLonger(request)
  }
  try {
    const { body, ...head } = await work()
    if (body instanceof ReadableStream) return new Response(ending(body, done), head)
    done()
    return new Response(body, head)
  } catch (error) {
    done()
    throw error
  }
}

/** A stream that tells when it is over, however that comes. */
function ending(body: ReadableStream<Uint8Array>, done: () => void) {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done: over, value } = await reader.read()
          if (value) return controller.enqueue(value)
          if (over) controller.close()
        } catch {
          // It cuts the connection. Of a reason Bun would print the stack.
          controller.error()
        }
        done()
      },
      async cancel(reason) {
        done()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
