import { Problem } from '../../core/problem'
import { decodeUtf8 } from './webhook-signature'

/** Returns the JSON object of a verified body. @throws 400 INVALID_INPUT when it is none */
export function parseEventBody<Event>(raw: Uint8Array): Partial<Event> {
  try {
    const event: unknown = JSON.parse(decodeUtf8(raw) ?? '')
    if (typeof event === 'object' && event !== null && !Array.isArray(event)) return event as Partial<Event>
  } catch {
    // Refused below.
  }
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
