/** What all answers say, unless they have a policy of their own. */
const SAID = {
  'x-api-version': 'v1',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
}
/** What an answer of the API depends on, beside its address. */
const VARY = 'tenant, Authorization, Cookie, x-api-key, x-impersonate-user, x-impersonate-workspace'
const PRIVATE = 'private, no-store'
/** For what has an ETag: a browser may keep it, and asks each time whether it still holds. */
const REVALIDATED = 'private, no-cache'
/** JSON that is opened as a page runs nothing and is framed by nobody. */
const JSON_POLICY = "default-src 'none'; frame-ancestors 'none'"
const STRICT_TRANSPORT = 'max-age=31536000' // s; a host may have names below it that speak no TLS
/** Answers that say all this, with their length in bytes. */
const complete = new WeakMap<Response, number>()

/** Of an answer of the API in JSON that may be revalidated, with what all answers say. */
export const jsonHeaders = new Headers({
  'content-type': 'application/json;charset=utf-8',
  ...SAID,
  ...{ 'cache-control': REVALIDATED, vary: VARY, 'content-security-policy': JSON_POLICY },
})

/** An answer whose headers began as `jsonHeaders`: copied as one, they cost a quarter of what they do one by one. */
export function jsonAnswer(text: string | null, headers: Headers, status = 200): Response {
  const answer = new Response(text, { status, headers })
  complete.set(answer, text === null ? 0 : Buffer.byteLength(text))
  return answer
}

/** The length of an answer's body, where that is known at once. */
export function lengthOf(answer: Response): number | undefined {
  const known = complete.get(answer)
  if (known !== undefined) return known
  if (answer.status === 204 || answer.status === 304) return 0
  const announced = answer.headers.get('content-length')
  return announced ? Number(announced) : undefined
}

/** Whether an answer is JSON. */
export const isJsonAnswer = ({ headers }: Response) => isJson(headers.get('content-type'))

/** Has an answer say what all of them do; by TLS, that only TLS is spoken here. */
export function completed(answer: Response, url: string, secure: boolean) {
  if (secure) answer.headers.set('strict-transport-security', STRICT_TRANSPORT)
  if (complete.has(answer)) return
  const { headers } = answer
  headers.set('x-api-version', SAID['x-api-version'])
  headers.set('x-content-type-options', SAID['x-content-type-options'])
  if (!headers.has('referrer-policy')) headers.set('referrer-policy', SAID['referrer-policy'])
  // What has a policy of its own stays frameable where that allows it, such as a plugin's page, which is in a sandbox.
  if (!headers.has('content-security-policy')) {
    headers.set('x-frame-options', SAID['x-frame-options'])
    if (isJson(headers.get('content-type'))) headers.set('content-security-policy', JSON_POLICY)
  }
  if (isOfApi(url)) keepPrivate(headers)
}

/** Unless an answer says itself who may keep it, nobody may; and each tenant's and caller's is told from the others'. */
function keepPrivate(headers: Headers) {
  if (!headers.has('cache-control')) headers.set('cache-control', headers.has('etag') ? REVALIDATED : PRIVATE)
  const vary = headers.get('vary')
  if (!vary) headers.set('vary', VARY)
  // What names the tenant knows on what it depends, such as the files of a component, which are for all callers.
  else if (!/(^|[\s,])tenant([\s,]|$)/i.test(vary)) headers.set('vary', `${vary}, ${VARY}`)
}

const isJson = (type: string | null) => !!type && /^application\/(?:[\w.+-]+\+)?json\b/i.test(type)
const isOfApi = (url: string) => url.startsWith('/api/', url.indexOf('/', url.startsWith('http') ? 8 : 0))
