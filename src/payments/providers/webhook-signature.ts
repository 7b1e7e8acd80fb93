import { now } from '../../core/clock'
import { Problem } from '../../core/problem'

/** How much the timestamp of a signature may differ from the current time, in seconds. */
export const SIGNATURE_TOLERANCE_SECONDS = 300

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Returns the text of a body byte for byte, or undefined if it is not valid UTF-8. */
export function decodeUtf8(raw: Uint8Array): string | undefined {
  try {
    return decoder.decode(raw)
  } catch {
    return undefined
  }
}

/** Returns whether a time (seconds since 1970) is now, within the tolerance. */
export const isFresh = (seconds: number) => Math.abs(now() / 1000 - seconds) <= SIGNATURE_TOLERANCE_SECONDS

/** Returns the configured secrets: one, or several during a rotation. */
export const toSecretList = (secrets: string | string[] | undefined) => (secrets ? [secrets].flat() : [])

/** Returns the HMAC-SHA256 in hex. */
export const hmac = (secret: string, ...parts: (string | Uint8Array)[]) => {
  const hasher = new Bun.CryptoHasher('sha256', secret)
  for (const part of parts) hasher.update(part)
  return hasher.digest('hex')
}

/** Returns the JSON object of a verified body. @throws 400 INVALID_INPUT when it is none */
export function parseEventBody<Event>(raw: Uint8Array): Partial<Event> {
  try {
    const event: unknown = JSON.parse(decodeUtf8(raw) ?? '')
    if (typeof event === 'object' && event !== null && !Array.isArray(event)) return event as Partial<Event>
  } catch {}
  return throwInvalidEvent()
}

/** Returns the fields that every event has. @throws 400 INVALID_INPUT when one is missing or invalid */
export function requireEventHead(id: unknown, type: unknown, occurredAt: number) {
  if (typeof id !== 'string' || !id || id.length > 255 || typeof type !== 'string' || !type || type.length > 255)
    return throwInvalidEvent()
  return isTime(occurredAt) ? { id, type, occurredAt: Math.trunc(occurredAt) } : throwInvalidEvent()
}

const throwInvalidEvent = (): never => {
  throw new Problem(400, 'INVALID_INPUT', 'The body is not a valid event of this provider.')
}

const MAX_TIME_MS = Date.UTC(9999, 0)

/** Returns whether a number (ms since 1970) is a time with which dates can be computed. */
const isTime = (ms: number) => ms > 0 && ms < MAX_TIME_MS

/** Returns a time in ms since 1970, from ISO 8601 text or from seconds since 1970, or undefined for anything else. */
export function parseTime(value: unknown): number | undefined {
  const ms = typeof value === 'number' ? value * 1000 : typeof value === 'string' ? Date.parse(value) : Number.NaN
  return isTime(ms) ? Math.trunc(ms) : undefined
}

/** Returns a period in ms since 1970, or nothing unless it ends after it starts. */
export function parsePeriod(start: unknown, end: unknown) {
  const [periodStart, periodEnd] = [parseTime(start), parseTime(end)]
  const lasts = periodStart !== undefined && periodEnd !== undefined && periodEnd > periodStart
  return lasts ? { periodStart, periodEnd } : {}
}

/** Returns the value if it is a text that is not empty. */
export const nonEmptyText = (value: unknown) => (typeof value === 'string' && value ? value : undefined)
