import { now } from '../../core/clock'
import { Problem } from '../../core/problem'

/** How long a signature is good, in seconds, for it says when it was made. */
export const SIGNATURE_TOLERANCE_SECONDS = 300

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text of a body, whose bytes are those and no others; undefined where they are none. */
export function decodeUtf8(raw: Uint8Array): string | undefined {
  try {
    return decoder.decode(raw)
  } catch {
    return undefined
  }
}

/** Whether a moment (seconds since 1970) is now, give or take the tolerance. */
export const isFresh = (seconds: number) => Math.abs(now() / 1000 - seconds) <= SIGNATURE_TOLERANCE_SECONDS

/** One secret, or two while one takes the place of the other. */
export const toSecretList = (secrets: string | string[] | undefined) => (secrets ? [secrets].flat() : [])

/** HMAC-SHA256 in hex. */
export const hmac = (secret: string, ...parts: (string | Uint8Array)[]) => {
  const hasher = new Bun.CryptoHasher('sha256', secret)
  for (const part of parts) hasher.update(part)
  return hasher.digest('hex')
}

/** The JSON object of a body that was verified. @throws 400 */
export function parseEventBody<Event>(raw: Uint8Array): Partial<Event> {
  try {
    const event: unknown = JSON.parse(decodeUtf8(raw) ?? '')
    if (typeof event === 'object' && event !== null && !Array.isArray(event)) return event as Partial<Event>
  } catch {}
  return throwInvalidEvent()
}

/** What every event has to have. @throws 400 */
export function requireEventHead(id: unknown, type: unknown, occurredAt: number) {
  if (typeof id !== 'string' || !id || id.length > 255 || typeof type !== 'string' || !type || type.length > 255)
    return throwInvalidEvent()
  return isTime(occurredAt) ? { id, type, occurredAt: Math.trunc(occurredAt) } : throwInvalidEvent()
}

const throwInvalidEvent = (): never => {
  throw new Problem(400, 'INVALID_INPUT', 'The body is not a valid event of this provider.')
}

const MAX_TIME_MS = Date.UTC(9999, 0)

/** Whether a number (ms since 1970) is a time with which calendars can count on. */
const isTime = (ms: number) => ms > 0 && ms < MAX_TIME_MS

/** Milliseconds of a time as ISO 8601 has it, or of seconds since 1970; undefined for what is neither. */
export function parseTime(value: unknown): number | undefined {
  const ms = typeof value === 'number' ? value * 1000 : typeof value === 'string' ? Date.parse(value) : Number.NaN
  return isTime(ms) ? Math.trunc(ms) : undefined
}

/** From when to when, where that is some time. */
export function parsePeriod(start: unknown, end: unknown) {
  const [periodStart, periodEnd] = [parseTime(start), parseTime(end)]
  const lasts = periodStart !== undefined && periodEnd !== undefined && periodEnd > periodStart
  return lasts ? { periodStart, periodEnd } : {}
}

/** A text that says something. */
export const nonEmptyText = (value: unknown) => (typeof value === 'string' && value ? value : undefined)
