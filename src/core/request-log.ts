import { toIsoString } from './clock'
import { log, logOutput, logSecurity, type SecurityEvent } from './log'

/** What the log tells of a request, noted on its way by those who find it out. */
export type RequestNotes = {
  /** A moment of `performance.now`. */
  started: number
  tenant?: string
  /** The id of the user who asks. */
  user?: string
  /** The path as the routes have it, `/api/users/:id`. */
  route?: string
  /** The code of the problem that was answered. */
  code?: string
}

// On the request itself, for a WeakMap with an entry for each request is dear to collect. Whatever takes its place has it, too.
const NOTES = Symbol('notes')
type RequestWithNotes = Request & { [NOTES]?: RequestNotes }

/** Begins the notes of a request, when it came in. */
export function startNotes(request: RequestWithNotes): RequestNotes {
  const notes = { started: performance.now() }
  request[NOTES] = notes
  return notes
}

/** What is known of a request so far; undefined for one that did not come in by the gateway. */
export const notesOf = (request: RequestWithNotes): RequestNotes | undefined => request[NOTES]

export function noteRoute(request: Request, route: string) {
  const notes = notesOf(request)
  if (notes) notes.route = route
}

/** Notes who asks; for somebody who acts as another user, who they are themselves. */
export function noteUser(request: Request, user: string) {
  const notes = notesOf(request)
  if (notes) notes.user = user
}

type ResponseSummary = { requestId: string; method: string; status: number; bytes: number | undefined }

/**
 * The line of a request. It is formatted here, because pino takes several times as long for it; nothing in it needs to be
 * escaped but the caller's method and the route.
 */
export function logRequest({ started, tenant, user, route, code }: RequestNotes, summary: ResponseSummary) {
  if (!log.isLevelEnabled('info')) return
  const { requestId, method, status, bytes } = summary
  const ms = Math.round((performance.now() - started) * 100) / 100
  const who = `${tenant ? `,"tenant":"${tenant}"` : ''}${user ? `,"user":"${user}"` : ''}`
  const where = `,"method":${toCachedJson(method)}${route ? `,"route":${toCachedJson(route)}` : ''}`
  const what = `,"status":${status}${code ? `,"code":"${code}"` : ''},"ms":${ms}${bytes === undefined ? '' : `,"bytes":${bytes}`}`
  logOutput.write(
    `{"level":"info","time":"${toIsoString(Date.now())}","requestId":"${requestId}"${who}${where}${what}}\n`,
  )
}

const jsonByText = new Map<string, string>()

/** JSON of a method or a route, of which there are few. */
function toCachedJson(text: string): string {
  const cached = jsonByText.get(text)
  if (cached) return cached
  const json = JSON.stringify(trimTrailingSlash(text))
  if (jsonByText.size < 2_000) jsonByText.set(text, json)
  return json
}

/** Some routes end with a slash, which callers need not send. */
const trimTrailingSlash = (route: string) => route.replace(/(?<=.)\/$/, '')

/** Warns of a refusal that somebody who watches for attacks looks for. */
export function logRefusal(notes: RequestNotes, { requestId, method, status }: ResponseSummary, address: string) {
  const event = toSecurityEvent(status, notes.code)
  if (!event || !log.isLevelEnabled('warn')) return
  const { tenant, user, route, code } = notes
  logSecurity(event, { requestId, tenant, user, address, method, route: route && trimTrailingSlash(route), code })
}

function toSecurityEvent(status: number, code?: string): SecurityEvent | undefined {
  if (status === 403) return 'forbidden'
  if (status === 429) return 'rate-limited'
  if (status !== 401 || code === 'SECOND_FACTOR_REQUIRED') return // which is on the way to a sign-in
  return code === 'UNAUTHENTICATED' || code === 'INVALID_SIGNATURE' ? 'unauthenticated' : 'signin-failed'
}
