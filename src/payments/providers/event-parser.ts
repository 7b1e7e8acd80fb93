import { tryParseJson } from '../../core/json'
import { Problem } from '../../core/problem'
import type { Period, ProviderEvent } from './provider'
import { decodeUtf8 } from './webhook-signature'

/** Returns what an event says about the object that it is about. */
export type EventReader<Data> = (data: Data, occurredAt: number) => Partial<ProviderEvent>

/** The parts of an event, of which nothing is known yet but that they come from the provider. */
type EventParts<Data> = {
  id?: unknown
  type?: unknown
  occurredAt?: unknown
  data?: Data | null
  /** Why no event of this form can be understood, whatever its type is. */
  misfit?: string
  /** Why an event with a meaning cannot be understood: its version is unknown. */
  unknownVersion?: string
}

/**
 * Returns a parser of verified bodies. Events without a reader have no meaning. `Data` has the fields, all optional, that the
 * readers take from the objects of events. The parser throws 400 INVALID_INPUT for a body that is no event.
 */
export function createEventParser<Body, Data extends object>(
  select: (body: Partial<Body>) => EventParts<Data>,
  readers: Record<string, EventReader<Data>>,
) {
  const readerByType = toMap(readers)
  return (raw: Uint8Array): ProviderEvent => {
    const { id, type, occurredAt, data, misfit, unknownVersion } = select(parseEventBody<Body>(raw))
    const event = requireEventHead(id, type, parseTime(occurredAt))
    const read = readerByType.get(event.type)
    if (misfit) return { ...event, unreadable: misfit }
    if (!read) return event
    if (unknownVersion) return { ...event, unreadable: unknownVersion }
    if (typeof data !== 'object' || data === null) return { ...event, unreadable: 'The event has no data.' }
    return { ...event, ...read(data, event.occurredAt) }
  }
}

function parseEventBody<Body>(raw: Uint8Array): Partial<Body> {
  const body = tryParseJson(decodeUtf8(raw) ?? '')
  return typeof body === 'object' && body !== null && !Array.isArray(body)
    ? (body as Partial<Body>)
    : throwInvalidEvent()
}

/** Returns the fields that every event has. */
function requireEventHead(id: unknown, type: unknown, occurredAt: number | undefined) {
  if (typeof id !== 'string' || !id || id.length > 255 || typeof type !== 'string' || !type || type.length > 255)
    return throwInvalidEvent()
  return occurredAt === undefined ? throwInvalidEvent() : { id, type, occurredAt }
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
export function parsePeriod(start: unknown, end: unknown): Period | Record<string, never> {
  const [periodStart, periodEnd] = [parseTime(start), parseTime(end)]
  const lasts = periodStart !== undefined && periodEnd !== undefined && periodEnd > periodStart
  return lasts ? { periodStart, periodEnd } : {}
}

/** Returns the value if it is a text that is not empty. */
export const nonEmptyText = (value: unknown) => (typeof value === 'string' && value ? value : undefined)

/** Returns why an event is not understood whose subscription has a status that is not among the known ones, if so. */
export const unknownStatus = (
  status: string | undefined,
  known: { has(status: string): boolean },
  ...more: string[]
) =>
  !status || known.has(status) || more.includes(status)
    ? {}
    : { meaning: undefined, unreadable: `The subscription has the status "${status}", which Atoll does not know.` }

/** Returns the tenant and the subscription from the metadata that a checkout has sent. */
export const parseOwnMetadata = (metadata: Record<string, unknown> | null | undefined) => ({
  tenant: nonEmptyText(metadata?.tenant),
  subscriptionId: nonEmptyText(metadata?.subscription) ?? nonEmptyText(metadata?.subscriptionId),
})

/** Returns a map with the entries of an object. Unlike the object, it has no other keys, such as `constructor`. */
export const toMap = <Value>(entries: Record<string, Value>): ReadonlyMap<string, Value> =>
  new Map(Object.entries(entries))
