import { Problem } from './problem'

const MAX_DEPTH = 64

/** What is asked while a body is read, and throws what is not taken. */
export type BodyInspector = {
  /** So many bytes are there or announced, and `most` may come. */
  onBytes?: (count: number, most: number) => void
  /** The JSON of one that is not small. */
  onLargeValue?: (value: unknown) => void
}

const LARGE_BODY_LENGTH = 4 << 10 // characters; in fewer nothing can be so long that it matters

/**
 * The JSON of a request's body; undefined when there is none.
 * @throws 413 beyond `limit` bytes, 415 for another type, 400 for what is not JSON or cannot be kept; and what is judged
 */
export async function readJson(request: Request, limit: number, inspector: BodyInspector = {}): Promise<unknown> {
  const text = await readText(request, limit, inspector)
  if (text === undefined) return
  if (!isJson(request))
    throw new Problem(415, 'UNSUPPORTED_MEDIA_TYPE', 'Send JSON, with the header Content-Type: application/json.')
  try {
    const value: unknown = JSON.parse(text)
    if (text.length > LARGE_BODY_LENGTH) inspector.onLargeValue?.(value)
    return requireStorable(value)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw malformedBody()
  }
}

/** Whether the body of a request calls itself JSON. */
export const isJson = ({ headers }: Request) =>
  /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(headers.get('content-type') ?? '')

export const malformedBody = () =>
  new Problem(400, 'MALFORMED_BODY', 'The body is not JSON. Check its quotes, commas and brackets.')

/** The value of a JSON text. @throws SyntaxError, and 400 for what cannot be kept */
export const parseJson = (text: string): unknown => requireStorable(JSON.parse(text))

/** A value as it is, if it can be kept. @throws 400 */
export function requireStorable<T>(value: T): T {
  assertStorable(value, MAX_DEPTH)
  return value
}

/** Whether a value that nobody sent is one that could have been. */
export function isStorable(value: unknown): boolean {
  try {
    requireStorable(value)
    return true
  } catch {
    return false
  }
}

/** A text that somebody else made, without what no engine can keep. */
export const toStorableText = (text: string): string => text.replaceAll('\0', '').toWellFormed()

let incomingBodies = 0

/** How many bodies are being received. A server that stops does not wait long for the rest of them. */
export const countIncomingBodies = () => incomingBodies

async function trackIncoming<T>(body: Promise<T>): Promise<T> {
  incomingBodies++
  return body.finally(() => incomingBodies--)
}

/** The text of a request's body; undefined for one of no bytes. @throws 413 beyond `limit` bytes */
export async function readText(
  request: Request,
  limit: number,
  inspector: BodyInspector = {},
): Promise<string | undefined> {
  const length = requireContentLength(request, limit)
  if (length) inspector.onBytes?.(length, length)
  if (length !== undefined) return length ? trackIncoming(request.text().catch(throwUnreadableBody)) : undefined
  const bytes = await trackIncoming(readCounted(request.body!, limit, inspector))
  return bytes.length ? new TextDecoder().decode(bytes) : undefined
}

/** The bytes of a request's body, as they came. @throws 413 beyond `limit` bytes */
export async function readBytes(request: Request, limit: number): Promise<Uint8Array> {
  const length = requireContentLength(request, limit)
  return trackIncoming(
    length === undefined ? readCounted(request.body!, limit) : request.bytes().catch(throwUnreadableBody),
  )
}

/** How many bytes a body has, as far as that is known before. @throws 413 */
function requireContentLength({ body, headers }: Request, limit: number): number | undefined {
  if (!body) return 0
  const length = headers.get('content-length')
  if (Number(length) > limit) throw bodyTooLarge(limit)
  return length ? Number(length) : undefined
}

/** A body of unannounced length is counted as it comes in. */
async function readCounted(
  body: ReadableStream<Uint8Array>,
  limit: number,
  inspector: BodyInspector = {},
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  const reader = body.getReader()
  for (;;) {
    const { done, value } = await reader.read().catch(throwUnreadableBody)
    if (done) return Buffer.concat(chunks)
    size += value.byteLength
    try {
      if (size > limit) throw bodyTooLarge(limit)
      inspector.onBytes?.(size, limit)
    } catch (error) {
      // Nobody waits for it: a sender may never end.
      reader.cancel().catch(() => {})
      throw error
    }
    chunks.push(value)
  }
}

/** For a body that breaks off. */
export const throwUnreadableBody = (cause: unknown): never => {
  throw new Problem(400, 'MALFORMED_BODY', 'The body ended before it was complete.', { cause })
}

const bodyTooLarge = (limit: number) =>
  new Problem(413, 'BODY_TOO_LARGE', `The body is too large: at most ${limit} bytes are accepted.`)

/** Refuses what no engine can keep, and what would exhaust the stack of those who walk through it. */
function assertStorable(value: unknown, depth: number): void {
  if (typeof value === 'string') {
    if (value.includes('\0')) throw invalidBody('Text must not contain the character U+0000.')
    if (!value.isWellFormed()) throw invalidBody('Text must not contain an unpaired surrogate.')
  } else if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw invalidBody('A number is too large.')
  } else if (value !== null && typeof value === 'object') {
    if (depth === 0) throw invalidBody(`The body is nested more than ${MAX_DEPTH} levels deep.`)
    // Whoever puts what does not fit into a sentence would fail, because this is no function.
    if (Object.hasOwn(value, 'toString')) Object.defineProperty(value, Symbol.toPrimitive, { value: () => '{…}' })
    for (const key in value) {
      if (key === '__proto__') throw invalidBody('A property must not be named "__proto__".')
      assertStorable(key, depth)
      assertStorable((value as Record<string, unknown>)[key], depth - 1)
    }
  }
}

const invalidBody = (message: string) =>
  new Problem(400, 'INVALID_INPUT', message, { details: [{ path: '', message }] })
