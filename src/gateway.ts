import type { Server, TLSOptions } from 'bun'
import { identifyCaller } from './accounts/caller-identity'
import { addRenewedCookie } from './accounts/cookies'
import { createDirectReadFinder, type FoundRead } from './accounts/direct-reads'
import { app } from './app'
import { config, logFormat } from './config'
import { type Awaitable, andThen } from './core/awaitable'
import { respondIfModified } from './core/etag'
import { noteRequest } from './core/jit-policy'
import { formatLogAs, log, setLogLevel } from './core/log'
import { Problem, toProblemResponse } from './core/problem'
import { getRequestId } from './core/request-id'
import { logRefusal, logRequest, type RequestNotes, startNotes, trimTrailingSlash } from './core/request-log'
import { runInRequestTrace } from './core/request-trace'
import {
  bodyLengthOf,
  isJsonResponse,
  restoreBodyLength,
  setCommonHeaders,
  setRateLimitHeaders,
  setStrictTransportSecurity,
} from './core/response'
import { getProcessNumber } from './core/server-processes'
import { assertUtf8Query } from './core/utf8-queries'
import { addCorsHeaders, answerPreflight, isPreflight } from './http/cors'
import { executeOnce } from './http/idempotency/execution'
import { recordRequest } from './operations/metrics/request-statistics'
import { respondFromSite } from './sites/response'
import { findSiteTarget } from './sites/site-path'
import { releaseBody } from './tenancy/body-budget'
import {
  clientIp,
  endProcessing,
  isHttps,
  linkOriginalRequest,
  restoreIdleTimeout,
  setServer,
  startProcessing,
} from './tenancy/client-connection'
import { costlyWork } from './tenancy/fair-queue'
import { handleAsOperator } from './tenancy/operator-events'
import { warnAboutUntrustedProxy } from './tenancy/untrusted-proxy'
import { answerChallenge, isChallenge } from './tls/challenges'

setLogLevel(config.ATOLL_LOG_LEVEL)
formatLogAs(logFormat)

const VERSIONED_PREFIX = '/api/v1'

/**
 * Handles every request and returns its response: everything that is common to all requests. Tests that compare both ways
 * let Elysia answer direct reads, too.
 */
export const handleRequest = async (request: Request, { areReadsDirect = true } = {}): Promise<Response> =>
  runInRequestTrace(request, areReadsDirect ? respond : (request) => respond(request, () => undefined))

// Without a promise for what is in memory: it would cost about a twentieth of it.
function respond(request: Request, findRead = findDirectRead): Awaitable<Response> {
  noteRequest()
  warnAboutUntrustedProxy(request)
  const siteTarget = findSiteTarget(request)
  const fromSite = siteTarget === undefined ? undefined : serveSite(request, siteTarget)
  if (fromSite instanceof Promise) return fromSite.then((response) => response ?? respondFromRoute(request, findRead))
  return fromSite ?? respondFromRoute(request, findRead)
}

function respondFromRoute(request: Request, findRead = findDirectRead): Awaitable<Response> {
  const plain = isReadable(request.url) ? findRead(request) : undefined
  const normalized = plain ? request : withNormalizedUrl(request)
  const read = plain ?? (normalized === request ? undefined : findRead(normalized))
  const notes = startNotes(normalized)
  const complete = (answer: Response) => completeResponse(request, normalized, notes, answer)
  const startedAt = performance.now()
  const answer = read && answerRead(normalized, read)
  const isAnswered = answer !== undefined && !(answer instanceof Promise)
  const response = isAnswered ? complete(answer) : undefined
  if (read && notes.tenant) costlyWork.noteCheapRequest(notes.tenant, performance.now() - startedAt)
  if (isAnswered) return response!
  startProcessing(request)
  const answering =
    answer ?? (isForOperator(normalized) ? handleAsOperator(() => dispatch(normalized)) : dispatch(normalized))
  return answering
    .finally(() => {
      endProcessing(request)
      releaseBody(request)
    })
    .then(complete)
}

/** Adds to an answer what all responses have, and logs it. */
function completeResponse(
  request: Request,
  normalized: Request,
  notes: RequestNotes,
  answer: Response,
): Awaitable<Response> {
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  const response = isRead && !notes.route?.includes('*') ? respondIfModified(request, answer) : answer
  if (isComplete(response, notes)) restoreIdleTimeout(request)
  if (request.method === 'HEAD') restoreBodyLength(response)
  const requestId = getRequestId(normalized)
  response.headers.set('x-request-id', requestId)
  setCommonHeaders(response, normalized.url, isHttps(normalized))
  if (notes.rateLimit) setRateLimitHeaders(response, notes.rateLimit)
  addRenewedCookie(request, response)
  const origin = normalized.headers.get('origin')
  const finish = () => {
    logResponse(normalized, notes, requestId, response)
    return response
  }
  return origin === null ? finish() : addCorsHeaders(normalized, origin, response).then(finish)
}

const SITE_ROUTE = '/*'

/** Returns the response of the site at the host of a request; undefined where there is none. */
function serveSite(request: Request, target: string): Response | undefined | Promise<Response | undefined> {
  const notes = startNotes(request)
  const complete = (response: Response | undefined) => response && completeSiteResponse(request, notes, response)
  const refuse = (error: unknown) => {
    const response = toProblemResponse(error, request)
    setCommonHeaders(response, request.url, false)
    return complete(response)
  }
  let answer: ReturnType<typeof respondFromSite>
  try {
    answer = respondFromSite(request, target)
  } catch (error) {
    return refuse(error)
  }
  return answer instanceof Promise ? answer.then(complete, refuse) : complete(answer)
}

function completeSiteResponse(request: Request, notes: RequestNotes, response: Response): Response {
  notes.route = SITE_ROUTE
  const requestId = getRequestId(request)
  response.headers.set('x-request-id', requestId)
  if (isHttps(request)) setStrictTransportSecurity(response)
  logResponse(request, notes, requestId, response)
  return response
}

const isForOperator = ({ url }: Request) => url.includes('/operator/')

/** Tells whether a response is complete. A proxied response may be a stream, whatever its type. */
const isComplete = (response: Response, { route }: RequestNotes) =>
  !route?.includes('*') && (bodyLengthOf(response) !== undefined || isJsonResponse(response))

function logResponse(request: Request, notes: RequestNotes, requestId: string, response: Response) {
  const { method } = request
  const { status } = response
  notes.route ??= routeOf(request, status)
  recordRequest(notes, method, status)
  const summary = { requestId, method, status, bytes: method === 'HEAD' ? 0 : bodyLengthOf(response) }
  if (status === 401 || status === 403 || status === 429) logRefusal(notes, summary, clientIp(request))
  if (!log.isLevelEnabled('info')) return
  // A proxied response may be a stream of unknown length.
  if (summary.bytes !== undefined || notes.route?.includes('*') || !isJsonResponse(response))
    return logRequest(notes, summary)
  const copy = response.clone().blob()
  copy.then(
    ({ size }) => logRequest(notes, { ...summary, bytes: size }),
    () => logRequest(notes, summary),
  )
}

/** Returns the route of a request that was refused before it reached the route, or whose route has no guard. */
function routeOf({ method, url }: Request, status: number): string | undefined {
  if (status === 404 || status === 405) return
  const path = URL.parse(url)?.pathname ?? ''
  const routeMethod = method === 'HEAD' ? 'GET' : method
  const found = listRoutes().find(
    (route) => route.method === routeMethod && (route.path === path || route.pattern.test(path)),
  )
  return found && trimTrailingSlash(found.path)
}

/**
 * Starts the server and returns it. With certificates it speaks HTTPS, also by HTTP/2, and another server of this process
 * may take over its port.
 */
export function listen(hostname: string, port: number, tls?: TLSOptions[]): Server<undefined> {
  const server = Bun.serve({
    hostname,
    port,
    ...(tls && { tls, http2: true }),
    reusePort: !!tls || getProcessNumber() !== undefined,
    fetch(request) {
      // An authority may have followed a redirect to here.
      return tls && isChallenge(request) ? answerChallenge(request) : runInRequestTrace(request, respond)
    },
    // Larger bodies are refused where they are read, with a message instead of a closed connection.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    error: (error) => toProblemResponse(error, new Request('http://unreadable.invalid/')),
  })
  setServer(server)
  return server
}

async function dispatch(request: Request): Promise<Response> {
  if (isPreflight(request)) return answerPreflight(request)
  try {
    assertSupportedVersion(request)
  } catch (error) {
    return toProblemResponse(error, request)
  }
  const response = await dispatchOnce(request)
  return response.status === 404 ? (respondByAllowedMethods(request) ?? response) : response
}

/** @throws 400 UNSUPPORTED_VERSION */
function assertSupportedVersion({ headers }: Request) {
  const version = headers.get('accept-version')?.trim()
  if (version && version.toLowerCase() !== 'v1')
    throw new Problem(400, 'UNSUPPORTED_VERSION', 'Unsupported API version. Use v1.')
}

let directReads: ReturnType<typeof createDirectReadFinder> | undefined

/** Returns the read that answers a request without Elysia, if it has one. */
function findDirectRead({ method, url }: Request): FoundRead | undefined {
  const start = method === 'GET' && url.startsWith('http') ? url.indexOf('/', 8) : -1
  if (start < 0 || !url.startsWith('/api/', start)) return
  const end = url.indexOf('?', start)
  directReads ??= createDirectReadFinder(app)
  return directReads(url.slice(start, end < 0 ? undefined : end))
}

/** Answers a read with what its route checks, in the same order. */
function answerRead(request: Request, { direct, params }: FoundRead): Awaitable<Response> {
  const refuse = (error: unknown) => toProblemResponse(error, request)
  try {
    assertSupportedVersion(request)
    assertUtf8Query(request)
    const answer = andThen(direct.admit(request, direct.route), (ctx) => direct.read(ctx, params, request))
    return answer instanceof Promise ? answer.catch(refuse) : answer
  } catch (error) {
    return refuse(error)
  }
}

/** Runs a POST with an `Idempotency-Key` only once. */
async function dispatchOnce(request: Request): Promise<Response> {
  const key = request.method === 'POST' ? request.headers.get('idempotency-key') : null
  if (key === null) return app.fetch(request)
  return executeOnce(request, key, async (replayable) => app.fetch(replayable), identifyCaller).catch((error) =>
    toProblemResponse(error, request),
  )
}

/** Returns the response for a path that exists only with other methods, with those methods. */
function respondByAllowedMethods(request: Request): Response | undefined {
  const path = URL.parse(request.url)?.pathname ?? ''
  const candidates = listRoutes().filter(({ pattern }) => pattern.test(path))
  // A path without parameters takes precedence over `/:id`.
  const fewestParameters = Math.min(...candidates.map(({ parameters }) => parameters))
  const routeMethod = request.method === 'HEAD' ? 'GET' : request.method
  const methods = new Set(
    candidates.flatMap(({ method, parameters }) => (parameters === fewestParameters ? [method] : [])),
  )
  if (methods.has('GET')) methods.add('HEAD')
  if (!candidates.length || candidates.some(({ method }) => method === routeMethod)) return
  const headers = { allow: [...methods].join(', ') }
  if (request.method === 'OPTIONS') return new Response(null, { status: 204, headers })
  const message = `${request.method} is not allowed here. Allowed: ${headers.allow}.`
  return toProblemResponse(new Problem(405, 'METHOD_NOT_ALLOWED', message, { headers }), request)
}

let cachedRoutes: { method: string; path: string; pattern: RegExp; parameters: number }[] | undefined
const listRoutes = () => {
  cachedRoutes ??= app.routes
    .filter(({ path }) => !path.endsWith('*'))
    .map(({ method, path }) => ({
      method,
      path,
      pattern: new RegExp(`^${path.replace(/\/$/, '').replace(/:\w+/g, '[^/]+')}/?$`),
      parameters: path.split(':').length - 1,
    }))
  return cachedRoutes
}

/**
 * Returns the request with the URL that the routes expect: without the alias `/api/v1`, and independent of the Host
 * header.
 */
function withNormalizedUrl(request: Request): Request {
  const { url } = request
  const pathStart = url.indexOf('/', url.startsWith('http') ? 8 : 0)
  const isVersioned =
    url.startsWith(VERSIONED_PREFIX, pathStart) && '/?'.includes(url[pathStart + VERSIONED_PREFIX.length] ?? '/')
  // The router takes the path from the place where it begins in `http://…`.
  const isNormal = url.startsWith('http:') && isReadable(url)
  if (isNormal && !isVersioned) return request
  const pathAndQuery = replaceUnreadable(
    isVersioned ? `/api${url.slice(pathStart + VERSIONED_PREFIX.length)}` : url.slice(Math.max(0, pathStart)),
  )
  // A new Request would hold the body until its end.
  const normalized = new Proxy(request, {
    get(target, key) {
      if (key === 'url') return `http://atoll.invalid${pathAndQuery}`
      const value = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  linkOriginalRequest(normalized, request)
  return normalized
}

/** Tells whether all of a URL can be decoded and stored; of others that is only known after a closer look. */
const isReadable = (url: string) => !(url.includes('%') && /%(?![\da-f]{2})|%00|%[89a-f]/i.test(url))

/** Replaces path segments that cannot be decoded or stored by one that matches no id. */
function replaceUnreadable(address: string): string {
  const [path = '', ...search] = address.split('?')
  const segments = path.split('/').map((segment) => {
    try {
      return decodeURIComponent(segment).includes('\0') ? UNREADABLE_SEGMENT : segment
    } catch {
      return UNREADABLE_SEGMENT
    }
  })
  return [segments.join('/'), ...search].join('?')
}
const UNREADABLE_SEGMENT = '%EF%BF%BD'
