import type { OpenCtx } from '../../accounts/guard'
import { same } from '../../core/secret'
import { waitsLong } from '../../tenancy/caller'
import { headersOf, narrowed, searchOf } from '../entities'
import { feedOf } from './feed'
import { Listener, reset } from './listener'
import { listening } from './log'
import { seat } from './seats'
import { eventOf, refuseOfLists, sealOf, type View, viewOf } from './view'

const HEADERS = {
  'content-type': 'text/event-stream;charset=utf-8',
  'cache-control': 'no-store',
  // Proxies such as nginx would keep events until they have a buffer full.
  'x-accel-buffering': 'no',
}

/**
 * The changes of the entities that a list with this query would show to the caller, as they happen: server-sent events
 * that go on where the one with the last id ended. @throws 400, 401, 403, 404, 429
 */
export async function listen(asked: OpenCtx, key: string, request: Request): Promise<Response> {
  const ctx = narrowed(asked, request)
  const search = new URLSearchParams(searchOf(request))
  // A field of that name is filtered by with an operator.
  const named = search.get('lastEventId')
  search.delete('lastEventId')
  refuseOfLists(search)
  const question = { key, search: `${search}`, pinned: request.headers.has('accept-version') }
  const view = await viewOf(ctx, question)
  const headers = headersOf(view)
  for (const [name, value] of Object.entries(HEADERS)) headers.set(name, value)
  if (request.method === 'HEAD') return new Response(null, { headers })
  const free = seat(ctx, request)
  try {
    const last = await listening(ctx, key)
    const start = await startOf(ctx, request.headers.get('last-event-id') || named, last, view)
    waitsLong(request)
    const { stream } = new Listener({ ctx, request, question }, feedOf(ctx, key, last), view, start.number, {
      ...start,
      free,
    })
    return new Response(stream, { headers })
  } catch (error) {
    free()
    throw error
  }
}

/** Where a listener begins: after the last event that they got, if it can be told what came since; else now. */
async function startOf(ctx: OpenCtx, id: string | null, last: number, view: View) {
  const [, text, seal = '', begun] = /^(\d{1,15})\.((\d{1,15})\.[\da-f]{32})$/.exec(id ?? '') ?? []
  const [number, since] = [Number(text), Number(begun)]
  // Bun sends the head of an answer with the first of its body, so there is always something to send.
  if (since <= number && number <= last && same(seal, await sealOf(ctx, view, since)))
    return { number, seal, due: ':\n\n' }
  const fresh = await sealOf(ctx, view, last)
  return { number: last, seal: fresh, due: id ? reset(last, fresh) : eventOf('ready', last, fresh, '{}') }
}
