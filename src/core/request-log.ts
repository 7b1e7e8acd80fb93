import { cacheTexts } from './cached-texts'
import { toIsoString } from './clock'
import { log, logOutput, logSecurity, type SecurityEvent } from './log'
import { getProcessNumber } from './server-processes'
import { currentTrace } from './trace'

/** What the request log says about a request, noted while the request is handled. */
export type RequestNotes = {
  /** When the request came in, as `performance.now()` (ms). */
  started: number
  /** The trace that the request is a part of. */
  traceId?: string
  tenant?: string
  /** The id of the user who made the request. */
  user?: string
  /** The route's path, such as `/api/users/:id`. */
  route?: string
  /** The error code of the response. */
  code?: string
  /** The rate limit of the caller, how many requests are left of it, and when all are there again (s). */
  rateLimit?: { limit: number; remaining: number; reset: number }
}

// Notes are a property of the request, because garbage collection of a WeakMap with an entry for each request is slow.
// A request that replaces another gets its notes, too.
const NOTES = Symbol('notes')
type RequestWithNotes = Request & { [NOTES]?: RequestNotes }

/** Creates the notes of a request that just came in, and returns them. */
export function startNotes(request: RequestWithNotes): RequestNotes {
  const notes: RequestNotes = { started: performance.now() }
  const trace = currentTrace()
  if (trace) notes.traceId = trace.traceId
  request[NOTES] = notes
  return notes
}

/** Returns the notes of a request, or undefined when it did not come through the gateway. */
export const notesOf = (request: RequestWithNotes): RequestNotes | undefined => request[NOTES]

/** Gives the notes of a request to one that replaces it. */
export function shareNotes(request: RequestWithNotes, original: RequestWithNotes) {
  request[NOTES] = original[NOTES]
}

export function noteRoute(request: Request, route: string) {
  const notes = notesOf(request)
  if (notes) notes.route = trimTrailingSlash(route)
}

/** Notes the user who made the request. During impersonation that is the impersonator. */
export function noteUser(request: Request, user: string) {
  const notes = notesOf(request)
  if (notes) notes.user = user
}

type ResponseSummary = { requestId: string; method: string; status: number; bytes: number | undefined }

/**
 * Logs a request. The line is formatted here, because `JSON.stringify` takes several times as long. Only the method
 * and the route may need escaping.
 */
export function logRequest(notes: RequestNotes, summary: ResponseSummary) {
  const { started, traceId, tenant, user, route, code } = notes
  if (!log.isLevelEnabled('info')) return
  const { requestId, method, status, bytes } = summary
  const hundredths = Math.round((performance.now() - started) * 100)
  const isLikeLast =
    status === last.status &&
    route === last.route &&
    user === last.user &&
    tenant === last.tenant &&
    method === last.method &&
    !code &&
    !traceId
  const fields = isLikeLast ? last.fields : toFields(notes, summary)
  if (!isLikeLast && !code && !traceId) last = { status, route, user, tenant, method, fields }
  const start = `${toLineStart(Date.now())}${requestId}"`
  const bytesField = bytes === undefined ? '' : `,"bytes":${bytes}`
  logOutput.write(`${start}${fields}${toMsText(hundredths)}${bytesField}}\n`, false)
}

/** The fields of the last line that other lines of its user and route share; only of lines without code and trace. */
let last = { fields: '' } as Partial<RequestNotes & ResponseSummary> & { fields: string }

/** Returns the fields between the id of a request and its duration. */
function toFields({ traceId, tenant, user, route, code }: RequestNotes, { method, status }: ResponseSummary): string {
  const worker = getProcessNumber()
  const callerFields = `${worker ? `,"worker":${worker}` : ''}${traceId ? `,"traceId":"${traceId}"` : ''}${tenant ? `,"tenant":"${tenant}"` : ''}${user ? `,"user":"${user}"` : ''}`
  const requestFields = `,"method":${toCachedJson(method)}${route ? `,"route":${toCachedJson(route)}` : ''}`
  return `${callerFields}${requestFields},"status":${status}${code ? `,"code":"${code}"` : ''},"ms":`
}

let [lineTime, lineStart] = [Number.NaN, '']

/** Returns the beginning of a line, cached because many lines have the same time. */
function toLineStart(time: number): string {
  if (time !== lineTime) [lineTime, lineStart] = [time, `{"level":"info","time":"${toIsoString(time)}","requestId":"`]
  return lineStart
}

const MAX_SHORT_MS = 10
const toShortText = cacheTexts((hundredths) => `${hundredths / 100}`)
const toMsText = (hundredths: number) =>
  hundredths < MAX_SHORT_MS * 100 ? toShortText(hundredths) : `${hundredths / 100}`

const jsonByText = new Map<string, string>()

/** Returns the JSON of a method or a route, of which there are few. */
function toCachedJson(text: string): string {
  const cached = jsonByText.get(text)
  if (cached) return cached
  const json = JSON.stringify(text)
  if (jsonByText.size < 2_000) jsonByText.set(text, json)
  return json
}

/** Some routes end with a slash, which callers need not send. */
export const trimTrailingSlash = (route: string) =>
  route.length > 1 && route.endsWith('/') ? route.slice(0, -1) : route

/** Logs a refused request as a security event, for operators who watch for attacks. */
export function logRefusal(notes: RequestNotes, { requestId, method, status }: ResponseSummary, address: string) {
  const event = toSecurityEvent(status, notes.code)
  if (!event || !log.isLevelEnabled('warn')) return
  const { tenant, user, route, code } = notes
  logSecurity(event, { requestId, tenant, user, address, method, route, code })
}

function toSecurityEvent(status: number, code?: string): SecurityEvent | undefined {
  if (status === 403) return 'forbidden'
  if (status === 429) return 'rate-limited'
  if (status !== 401 || code === 'SECOND_FACTOR_REQUIRED') return // a regular step of signing in
  return code === 'UNAUTHENTICATED' || code === 'INVALID_SIGNATURE' ? 'unauthenticated' : 'signin-failed'
}
