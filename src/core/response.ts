/** The headers of all responses, unless a response has its own. */
const COMMON_HEADERS = {
  'x-api-version': 'v1',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
}
/** What a response of the API depends on besides its URL. */
const API_VARY = 'tenant, Authorization, Cookie, x-api-key, x-impersonate-user, x-impersonate-workspace'
const CACHE_NO_STORE = 'private, no-store'
/** For responses with an ETag: a browser may store the response, and revalidates it each time. */
const CACHE_REVALIDATE = 'private, no-cache'
/** JSON that is opened as a page runs nothing and cannot be framed. */
const JSON_CSP = "default-src 'none'; frame-ancestors 'none'"
const HSTS = 'max-age=31536000' // s; without includeSubDomains, because subdomains may not use TLS
// A property, because garbage collection of a WeakMap with an entry for each response is slow.
/** The length of the body of a response that already has all common headers. */
const BODY_LENGTH = Symbol('body length')
type CompleteResponse = Response & { [BODY_LENGTH]?: number }

/** The headers of a JSON response of the API that may be revalidated, including the common ones. */
export const jsonHeaders = new Headers({
  'content-type': 'application/json;charset=utf-8',
  ...COMMON_HEADERS,
  ...{ 'cache-control': CACHE_REVALIDATE, vary: API_VARY, 'content-security-policy': JSON_CSP },
})

/**
 * Returns a response with a copy of headers that began as `jsonHeaders`. Copying them together costs a quarter of setting
 * them one by one. `isLate` tells that the response is created after the event-loop turn of its request.
 */
export function createJsonResponse(
  text: string | null,
  headers: Headers,
  { status = 200, etag, isLate = false }: { status?: number; etag?: string; isLate?: boolean } = {},
): Response {
  const length = text === null ? 0 : Buffer.byteLength(text)
  const body = text !== null && isLate && length > MAX_LATE_BYTES ? streamText(text) : text
  const response: CompleteResponse = new Response(body, { status, headers })
  if (etag) response.headers.set('etag', etag)
  response[BODY_LENGTH] = length
  return response
}

/** Bun sends a late response that exceeds its 16 KiB buffer in a packet for each part of a header. */
const MAX_LATE_BYTES = 12 << 10

const MAX_BUFFERED_BYTES = 128 << 10 // copying a larger late body takes longer than sending it separately

/** Returns a body that Bun sends in one packet with all headers, or after them and without its length if it is large. */
const streamText = (text: string) => {
  const source: Bun.DirectUnderlyingSource<string> = {
    type: 'direct',
    pull(controller) {
      controller.write(text)
      controller.close()
    },
  }
  return new ReadableStream(source, { highWaterMark: MAX_BUFFERED_BYTES })
}

/**
 * Returns a response whose text, status and headers another thread has made. One that has the common headers is complete,
 * so its length need not be read from a copy for the log.
 */
export function createMovedResponse(text: string, status: number, headers: [string, string][]): Response {
  const isComplete = headers.some(([name]) => name === 'x-api-version')
  return isComplete
    ? createJsonResponse(text, new Headers(headers), { status, isLate: true })
    : new Response(text, { status, headers })
}

/** Returns the length of a response's body in bytes, or undefined when it is not known without reading. */
export function bodyLengthOf(response: CompleteResponse): number | undefined {
  if (response[BODY_LENGTH] !== undefined) return response[BODY_LENGTH]
  if (response.status === 204 || response.status === 304) return 0
  const contentLength = response.headers.get('content-length')
  return contentLength ? Number(contentLength) : undefined
}

/** Takes the length of the body that HEAD leaves out, because Elysia replaces `Content-Length` by what it reads. */
export const OMITTED_BODY_LENGTH = 'x-omitted-body-length'

/** Sets `Content-Length` of a response to HEAD to the length of the body that GET would have. */
export function restoreBodyLength({ headers }: Response) {
  const length = headers.get(OMITTED_BODY_LENGTH)
  if (length === null) return
  headers.set('content-length', length)
  headers.delete(OMITTED_BODY_LENGTH)
}

/** Tells whether a response is JSON. */
export const isJsonResponse = ({ headers }: Response) => isJsonType(headers.get('content-type'))

/** Tells browsers to use TLS from now on. */
export const setStrictTransportSecurity = ({ headers }: Response) => headers.set('strict-transport-security', HSTS)

/** Sets the headers of all responses; over TLS also Strict-Transport-Security. */
export function setCommonHeaders(response: CompleteResponse, url: string, secure: boolean) {
  if (secure) setStrictTransportSecurity(response)
  if (response[BODY_LENGTH] !== undefined) return
  const { headers } = response
  headers.set('x-api-version', COMMON_HEADERS['x-api-version'])
  headers.set('x-content-type-options', COMMON_HEADERS['x-content-type-options'])
  if (!headers.has('referrer-policy')) headers.set('referrer-policy', COMMON_HEADERS['referrer-policy'])
  // A response with its own policy may be framed where that allows it, such as a plugin's page, which is sandboxed.
  if (!headers.has('content-security-policy')) {
    headers.set('x-frame-options', COMMON_HEADERS['x-frame-options'])
    if (isJsonType(headers.get('content-type'))) headers.set('content-security-policy', JSON_CSP)
  }
  if (isApiUrl(url)) setPrivateCaching(headers)
}

/** Sets the headers that tell a caller how many requests are left (draft-ietf-httpapi-ratelimit-headers-06). */
export function setRateLimitHeaders(
  { headers }: Response,
  { limit, remaining, reset }: { limit: number; remaining: number; reset: number },
) {
  headers.set('ratelimit-limit', `${limit}`)
  headers.set('ratelimit-remaining', `${remaining}`)
  headers.set('ratelimit-reset', `${reset}`)
}

/**
 * Forbids caches to store a response that does not set its own `Cache-Control`, and separates the responses by tenant
 * and caller.
 */
function setPrivateCaching(headers: Headers) {
  if (!headers.has('cache-control'))
    headers.set('cache-control', headers.has('etag') ? CACHE_REVALIDATE : CACHE_NO_STORE)
  const vary = headers.get('vary')
  if (!vary) headers.set('vary', API_VARY)
  // A `Vary` that names the tenant is complete, such as that of a component's files, which are the same for all
  // callers.
  else if (!/(^|[\s,])tenant([\s,]|$)/i.test(vary)) headers.set('vary', `${vary}, ${API_VARY}`)
}

const isJsonType = (type: string | null) => !!type && /^application\/(?:[\w.+-]+\+)?json\b/i.test(type)
const isApiUrl = (url: string) => url.startsWith('/api/', url.indexOf('/', url.startsWith('http') ? 8 : 0))
