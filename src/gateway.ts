import type { Server } from 'bun'
import { isPreflight, preflight, share } from './accounts/cors'
import { once } from './accounts/idempotency/once'
import { app } from './app'
import { config } from './config'
import { completed, isJsonAnswer, lengthOf } from './core/headers'
import { log, setLogLevel } from './core/log'
import { Problem, refusal } from './core/problem'
import { logRefusal, logRequest, type RequestNotes, startNotes } from './core/request-log'
import { nameOf } from './core/request-name'
import { releaseBody } from './tenancy/bodies'
import { addressOf, endWork, isSecure, listensOn, standsFor, startWork, waitsNoLonger } from './tenancy/caller'
import { costlyWork } from './tenancy/fair-queue'
import { noticeUntrustedProxy } from './tenancy/untrusted-proxy'

setLogLevel(config.ATOLL_LOG_LEVEL)

const ALIAS = '/api/v1'

/** Every request's way in and every answer's way out: what concerns all of them, whatever they are about. */
export async function handle(request: Request): Promise<Response> {
  costlyWork.arrived()
  noticeUntrustedProxy(request)
  const asked = addressed(request)
  const notes = startNotes(asked)
  if (request.method === 'GET' || request.method === 'HEAD') startWork(request)
  const response = await answer(asked).finally(() => {
    endWork(request)
    releaseBody(request)
  })
  if (isWhole(response, notes)) waitsNoLonger(request)
  const requestId = nameOf(asked)
  response.headers.set('x-request-id', requestId)
  completed(response, asked.url, isSecure(asked))
  const origin = asked.headers.get('origin')
  if (origin !== null) await share(asked, origin, response)
  logAnswer(asked, notes, requestId, response)
  return response
}

/** Whether all of an answer is there. What others pass on may be a stream, of whatever type. */
const isWhole = (response: Response, { route }: RequestNotes) =>
  !route?.includes('*') && (isJsonAnswer(response) || lengthOf(response) !== undefined)

function logAnswer(request: Request, notes: RequestNotes, requestId: string, response: Response) {
  const { method } = request
  const { status } = response
  notes.route ??= routeOf(request, status)
  const answered = { requestId, method, status, bytes: method === 'HEAD' ? 0 : lengthOf(response) }
  if (status === 401 || status === 403 || status === 429) logRefusal(notes, answered, addressOf(request))
  if (!log.isLevelEnabled('info')) return
  // What others pass on may be a stream, whose length nobody knows yet.
  if (answered.bytes !== undefined || notes.route?.includes('*') || !isJsonAnswer(response))
    return logRequest(notes, answered)
  const copied = response.clone().blob()
  copied.then(
    ({ size }) => logRequest(notes, { ...answered, bytes: size }),
    () => logRequest(notes, answered),
  )
}

/** The route of a request that ended before it was entered, or that nobody guards. */
function routeOf({ method, url }: Request, status: number): string | undefined {
  if (status === 404 || status === 405) return
  const path = URL.parse(url)?.pathname ?? ''
  const asked = method === 'HEAD' ? 'GET' : method
  return routes().find((one) => one.method === asked && (one.path === path || one.pattern.test(path)))?.path
}

/** Listens, and answers until it is told to stop. */
export function listen(hostname: string, port: number): Server<undefined> {
  const server = Bun.serve({
    hostname,
    port,
    fetch: handle,
    // Larger bodies are refused where they are read, by a sentence instead of a cut connection.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    error: (error) => refusal(error, new Request('http://unreadable.invalid/')),
  })
  listensOn(server)
  return server
}

async function answer(request: Request): Promise<Response> {
  if (isPreflight(request)) return preflight(request)
  const version = request.headers.get('accept-version')?.trim()
  if (version && version.toLowerCase() !== 'v1')
    return refusal(new Problem(400, 'UNSUPPORTED_VERSION', 'Unsupported API version. Use v1.'), request)
  const response = await worked(request)
  return response.status === 404 ? (otherMethods(request) ?? response) : response
}

/** A POST with an `Idempotency-Key` is worked on only once. */
async function worked(request: Request): Promise<Response> {
  const key = request.method === 'POST' ? request.headers.get('idempotency-key') : null
  if (key === null) return app.fetch(request)
  return once(request, key, async (asked) => app.fetch(asked)).catch((error) => refusal(error, request))
}

/** For a path that exists with other methods only: which. */
function otherMethods(request: Request): Response | undefined {
  const path = URL.parse(request.url)?.pathname ?? ''
  const matching = routes().filter(({ pattern }) => pattern.test(path))
  // Beside `/:id`, a path of its own wins.
  const fewest = Math.min(...matching.map(({ parameters }) => parameters))
  const asked = request.method === 'HEAD' ? 'GET' : request.method
  const methods = new Set(matching.flatMap(({ method, parameters }) => (parameters === fewest ? [method] : [])))
  if (methods.has('GET')) methods.add('HEAD')
  if (!matching.length || matching.some(({ method }) => method === asked)) return
  const headers = { allow: [...methods].join(', ') }
  if (request.method === 'OPTIONS') return new Response(null, { status: 204, headers })
  const message = `${request.method} is not allowed here. Allowed: ${headers.allow}.`
  return refusal(new Problem(405, 'METHOD_NOT_ALLOWED', message, { headers }), request)
}

let known: { method: string; path: string; pattern: RegExp; parameters: number }[] | undefined
const routes = () => {
  known ??= app.routes
    .filter(({ path }) => !path.endsWith('*'))
    .map(({ method, path }) => ({
      method,
      path,
      pattern: new RegExp(`^${path.replace(/\/$/, '').replace(/:\w+/g, '[^/]+')}/?$`),
      parameters: path.split(':').length - 1,
    }))
  return known
}

/** The same request at the address that the routes know: without the alias, and whatever the Host header says. */
function addressed(request: Request): Request {
  const { url } = request
  const path = url.indexOf('/', url.startsWith('http') ? 8 : 0)
  const aliased = url.startsWith(ALIAS, path) && '/?'.includes(url[path + ALIAS.length] ?? '/')
  const plain = url.startsWith('http:') && !(url.includes('%') && /%(?![\da-f]{2})|%00|%[89a-f]/i.test(url))
  if (plain && !aliased) return request
  const rest = readable(aliased ? `/api${url.slice(path + ALIAS.length)}` : url.slice(Math.max(0, path)))
  // Not a new Request: that would hold the body until its end.
  const same = new Proxy(request, {
    get(target, key) {
      if (key === 'url') return `http://atoll.invalid${rest}`
      const value = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  standsFor(same, request)
  return same
}

/** What is no text, or none that can be kept, becomes what nothing is called: such an id is not found. */
function readable(address: string): string {
  const [path = '', ...search] = address.split('?')
  const segments = path.split('/').map((segment) => {
    try {
      return decodeURIComponent(segment).includes('\0') ? UNKNOWN : segment
    } catch {
      return UNKNOWN
    }
  })
  return [segments.join('/'), ...search].join('?')
}
const UNKNOWN = '%EF%BF%BD'
