import type { PublicCtx } from '../../accounts/context'
import { isTimingSafeEqual } from '../../core/crypto'
import { disableIdleTimeout } from '../../tenancy/client-connection'
import { createHeaders, getQueryString, withoutPrivilege } from '../request'
import { enableLog } from './change-log'
import { getFeed } from './feed'
import { formatReset, SseSubscriber } from './sse-stream'
import { acquireStream } from './stream-limit'
import { assertNoListOptions, createSeal, formatEvent, getView, type View } from './view'

const STREAM_HEADERS = {
  'content-type': 'text/event-stream;charset=utf-8',
  'cache-control': 'no-store',
  // Proxies such as nginx would hold events back until a buffer is full.
  'x-accel-buffering': 'no',
}

/**
 * Returns a stream of server-sent events with the changes of the entities that a list with this query would show to the
 * caller. It resumes after the event with the last id. @throws 400, 401, 403, 404, 429
 */
export async function subscribe(originalCtx: PublicCtx, key: string, request: Request): Promise<Response> {
  const ctx = withoutPrivilege(originalCtx, request)
  const search = new URLSearchParams(getQueryString(request))
  // A field of this name can still be filtered with an operator.
  const lastEventId = search.get('lastEventId')
  search.delete('lastEventId')
  assertNoListOptions(search)
  const streamQuery = { key, search: `${search}`, pinned: request.headers.has('accept-version') }
  const view = await getView(ctx, streamQuery)
  const headers = createHeaders(view)
  for (const [name, value] of Object.entries(STREAM_HEADERS)) headers.set(name, value)
  if (request.method === 'HEAD') return new Response(null, { headers })
  const release = acquireStream(ctx, request)
  try {
    const last = await enableLog(ctx, key)
    const start = await resolveStart(ctx, request.headers.get('last-event-id') || lastEventId, last, view)
    disableIdleTimeout(request)
    const { stream } = new SseSubscriber({ ctx, request, streamQuery }, getFeed(ctx, key, last), view, start.number, {
      ...start,
      release,
    })
    return new Response(stream, { headers })
  } catch (error) {
    release()
    throw error
  }
}

/** Returns where a subscriber starts: after their last event if what followed can be resumed, otherwise now. */
async function resolveStart(ctx: PublicCtx, id: string | null, last: number, view: View) {
  const [, text, seal = '', sinceText] = /^(\d{1,15})\.((\d{1,15})\.[\da-f]{32})$/.exec(id ?? '') ?? []
  const [number, since] = [Number(text), Number(sinceText)]
  // Bun sends the head of a response with the first chunk of its body, so there is always something to send.
  if (since <= number && number <= last && isTimingSafeEqual(seal, await createSeal(ctx, view, since)))
    return { number, seal, initialText: ':\n\n' }
  const fresh = await createSeal(ctx, view, last)
  return {
    number: last,
    seal: fresh,
    initialText: id ? formatReset(last, fresh) : formatEvent('ready', last, fresh, '{}'),
  }
}
