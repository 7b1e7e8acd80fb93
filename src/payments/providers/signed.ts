import { timingSafeEqual } from 'node:crypto'
import { now } from '../../core/clock'
import { Problem } from '../../core/problem'

/** How long a signature is good, in seconds, for it says when it was made. */
export const TOLERANCE = 300

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text of a body, whose bytes are those and no others; undefined where they are none. */
export function textOf(raw: Uint8Array): string | undefined {
  try {
    return decoder.decode(raw)
  } catch {
    return undefined
  }
}

/** Whether a moment (seconds since 1970) is now, give or take the tolerance. */
export const isLately = (seconds: number) => Math.abs(now() / 1000 - seconds) <= TOLERANCE

/** One secret, or two while one takes the place of the other. */
export const secretsOf = (secrets: string | string[] | undefined) => (secrets ? [secrets].flat() : [])

/** HMAC-SHA256 in hex. */
export const hmac = (secret: string, ...parts: (string | Uint8Array)[]) => {
  const hasher = new Bun.CryptoHasher('sha256', secret)
  for (const part of parts) hasher.update(part)
  return hasher.digest('hex')
}

/** Compares signatures in a time that depends on their length alone. */
export function agree(one: string, other: string) {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** The JSON object of a body that was verified. @throws 400 */
export function eventIn<Event>(raw: Uint8Array): Partial<Event> {
  try {
    const event: unknown = JSON.parse(textOf(raw) ?? '')
    if (typeof event === 'object' && event !== null && !Array.isArray(event)) return event as Partial<Event>
  } catch {}
  return noEvent()
}

/** What every event has to have. @throws 400 */
export function headOf(id: unknown, type: unknown, occurredAt: number) {
  if (typeof id !== 'string' || !id || id.length > 255 || typeof type !== 'string' || !type || type.length > 255)
    return noEvent()
  return Number.isFinite(occurredAt) ? { id, type, occurredAt: Math.trunc(occurredAt) } : noEvent()
}

const noEvent = (): never => {
  throw new Problem(400, 'INVALID_INPUT', 'The body is no event of this provider.')
}

/** Milliseconds of a time as ISO 8601 has it, or of seconds since 1970; undefined for what is neither. */
export function moment(value: unknown): number | undefined {
  if (typeof value === 'number' && value > 0) return value * 1000
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}

/** From when to when, where that is some time. */
export function spanOf(start: unknown, end: unknown) {
  const [periodStart, periodEnd] = [moment(start), moment(end)]
  const lasts = periodStart !== undefined && periodEnd !== undefined && periodEnd > periodStart
  return lasts ? { periodStart, periodEnd } : {}
}

/** A text that says something. */
export const named = (value: unknown) => (typeof value === 'string' && value ? value : undefined)
