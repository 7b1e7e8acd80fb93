/** What all answers say, unless they have a policy of their own. */
const COMMON_HEADERS = {
  'x-api-version': 'v1',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
}
/** What an answer of the API depends on, beside its address. */
const API_VARY = 'tenant, Authorization, Cookie, x-api-key, x-impersonate-user, x-impersonate-workspace'
const CACHE_NO_STORE = 'private, no-store'
/** For what has an ETag: a browser may keep it, and asks each time whether it still holds. */
const CACHE_REVALIDATE = 'private, no-cache'
/** JSON that is opened as a page runs nothing and is framed by nobody. */
const JSON_CSP = "default-src 'none'; frame-ancestors 'none'"
const HSTS = 'max-age=31536000' // s; a host may have names below it that speak no TLS
/** Answers that say all this, with their length in bytes. */
const lengthByCompleteResponse = new WeakMap<Response, number>()

/** Of an answer of the API in JSON that may be revalidated, with what all answers say. */
export const jsonHeaders = new Headers({
  'content-type': 'application/json;charset=utf-8',
  ...COMMON_HEADERS,
  ...{ 'cache-control': CACHE_REVALIDATE, vary: API_VARY, 'content-security-policy': JSON_CSP },
})

/** An answer whose headers began as `jsonHeaders`: copied as one, they cost a quarter of what they do one by one. */
export function createJsonResponse(text: string | null, headers: Headers, status = 200): Response {
  const answer = new Response(text, { status, headers })
  lengthByCompleteResponse.set(answer, text === null ? 0 : Buffer.byteLength(text))
  return answer
}

/** The length of an answer's body, where that is known at once. */
export function bodyLengthOf(answer: Response): number | undefined {
  const knownLength = lengthByCompleteResponse.get(answer)
  if (knownLength !== undefined) return knownLength
  if (answer.status === 204 || answer.status === 304) return 0
  const contentLength = answer.headers.get('content-length')
  return contentLength ? Number(contentLength) : undefined
}

/** Whether an answer is JSON. */
export const isJsonResponse = ({ headers }: Response) => isJsonType(headers.get('content-type'))

/** Has an answer say what all of them do; by TLS, that only TLS is spoken here. */
export function setCommonHeaders(answer: Response, url: string, secure: boolean) {
  if (secure) answer.headers.set('strict-transport-security', HSTS)
  if (lengthByCompleteResponse.has(answer)) return
  const { headers } = answer
  headers.set('x-api-version', COMMON_HEADERS['x-api-version'])
  headers.set('x-content-type-options', COMMON_HEADERS['x-content-type-options'])
  if (!headers.has('referrer-policy')) headers.set('referrer-policy', COMMON_HEADERS['referrer-policy'])
  // What has a policy of its own stays frameable where that allows it, such as a plugin's page, which is in a sandbox.
  if (!headers.has('content-security-policy')) {
    headers.set('x-frame-options', COMMON_HEADERS['x-frame-options'])
    if (isJsonType(headers.get('content-type'))) headers.set('content-security-policy', JSON_CSP)
  }
  if (isApiUrl(url)) setPrivateCaching(headers)
}

/** Unless an answer says itself who may keep it, nobody may; and each tenant's and caller's is told from the others'. */
function setPrivateCaching(headers: Headers) {
  if (!headers.has('cache-control'))
    headers.set('cache-control', headers.has('etag') ? CACHE_REVALIDATE : CACHE_NO_STORE)
  const vary = headers.get('vary')
  if (!vary) headers.set('vary', API_VARY)
  // What names the tenant knows on what it depends, such as the files of a component, which are for all callers.
  else if (!/(^|[\s,])tenant([\s,]|$)/i.test(vary)) headers.set('vary', `${vary}, ${API_VARY}`)
}

const isJsonType = (type: string | null) => !!type && /^application\/(?:[\w.+-]+\+)?json\b/i.test(type)
const isApiUrl = (url: string) => url.startsWith('/api/', url.indexOf('/', url.startsWith('http') ? 8 : 0))
