import type { Awaitable } from './awaitable'
import { notesOf } from './request-log'
import { areSpansRecorded, parseTrace, runInTrace, startSpan } from './trace'

const HTTP_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY', 'TRACE', 'CONNECT']

/** Returns the method as metrics and traces name it: callers can invent methods. */
export const toKnownMethod = (method: string) => (HTTP_METHODS.includes(method) ? method : '_OTHER')

/** Handles a request as a part of the trace that its caller names, and as a span when spans are recorded. */
export function runInRequestTrace(
  request: Request,
  handle: (request: Request) => Awaitable<Response>,
): Awaitable<Response> {
  const header = request.headers.get('traceparent')
  const parent = header === null ? undefined : parseTrace(header, request.headers.get('tracestate'))
  if (areSpansRecorded()) return runInRequestSpan(request, parent, handle)
  return parent ? runInTrace(parent, () => handle(request)) : handle(request)
}

async function runInRequestSpan(
  request: Request,
  parent: ReturnType<typeof parseTrace>,
  handle: (request: Request) => Awaitable<Response>,
) {
  const method = toKnownMethod(request.method)
  const scheme = request.url.startsWith('https:') ? 'https' : 'http'
  const span = startSpan(method, 'server', { 'http.request.method': method, 'url.scheme': scheme }, parent)
  const response = await runInTrace(span?.trace, () => handle(request))
  const { route, tenant, user, code } = notesOf(request) ?? {}
  const { status } = response
  span?.describe(
    {
      'http.response.status_code': status,
      // The path is left out: it may hold identifiers and secrets.
      ...(route && { 'http.route': route }),
      ...(tenant && { 'atoll.tenant': tenant }),
      ...(user && { 'user.id': user }),
      ...(code && { 'atoll.error.code': code }),
    },
    route && `${method} ${route}`,
  )
  // By the conventions, what the caller did wrong is no error of a server.
  span?.end(status >= 500 ? (code ?? `${status}`) : undefined)
  return response
}
