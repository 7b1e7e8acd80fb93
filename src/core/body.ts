import { yieldToEventLoop } from './event-loop'
import { assertExactNumbers, InexactNumber, toInexactNumberError } from './exact-numbers'
import {
  assertNotEncoded,
  assertUtf8Charset,
  decodeBodyText,
  type IncomingBody,
  notUtf8,
  openBody,
  UNWATCHED_BODY_LENGTH,
  withinPatience,
} from './incoming-body'
import { badRequest, Problem } from './problem'
import { InvalidUtf8, NestedTooDeep, parseInSlices, type RunSlice } from './sliced-json'

const MAX_DEPTH = 64

/** Checks that run while a body is read; each may throw to refuse it. */
export type BodyInspector = {
  /** Called with the bytes received or announced so far, and with the most that may come. */
  onBytes?: (count: number, maxCount: number) => void
  /** Called with the bytes of each chunk of a large body. */
  onChunk?: (bytes: number) => void
  /** Waits, after each 128 KiB of a large body, until it is the turn of whoever sends it, or throws to refuse it. */
  waitForTurn?: () => Promise<void>
  /** Called with the parsed JSON of a body of more than 4,096 characters. */
  onLargeValue?: (value: unknown) => void
  /** Runs a slice of what is done with a body of more than 64 KiB. Without it, such a body is parsed at once. */
  runSlice?: RunSlice
}

const LARGE_BODY_LENGTH = 4 << 10 // characters; a shorter body cannot hold a list that is too long
const SLICED_BODY_LENGTH = 64 << 10 // bytes; a longer body would hold the thread for more than a ms or two

/**
 * Returns the JSON of a request's body, or undefined when there is no body.
 * @throws 413 BODY_TOO_LARGE beyond `limit` bytes
 * @throws 415 UNSUPPORTED_MEDIA_TYPE when the body is not declared as JSON, or is encoded or not UTF-8
 * @throws 400 MALFORMED_BODY when the body is not JSON, INVALID_INPUT when it cannot be stored or has a number that would
 * be changed; and whatever the inspector throws
 */
export async function readJson(request: Request, limit: number, inspector: BodyInspector = {}): Promise<unknown> {
  const body = await readTextOrBytes(request, limit, inspector)
  if (body === undefined) return
  if (!isJson(request))
    throw new Problem(415, 'UNSUPPORTED_MEDIA_TYPE', 'Send JSON, with the header Content-Type: application/json.')
  try {
    if (typeof body !== 'string') return await parseLargeBody(body, inspector)
    const value: unknown = JSON.parse(body)
    assertExactNumbers(body)
    if (body.length > LARGE_BODY_LENGTH) inspector.onLargeValue?.(value)
    return requireStorable(value)
  } catch (error) {
    if (error instanceof InvalidUtf8) throw notUtf8()
    if (error instanceof InexactNumber)
      return badRequest(toInexactNumberError(error, typeof body === 'string' ? body : undefined))
    if (error instanceof NestedTooDeep) throw invalidBody(TOO_DEEP_MESSAGE)
    if (!(error instanceof SyntaxError)) throw error
    throw malformedBody()
  }
}

async function parseLargeBody(bytes: Uint8Array, { onLargeValue, runSlice = runAtOnce }: BodyInspector) {
  const value = await parseInSlices(bytes, MAX_DEPTH, runSlice)
  onLargeValue?.(value)
  await assertStorableInSlices(value, runSlice)
  return value
}

const runAtOnce: RunSlice = async (slice) => slice()

/** Tells whether the `Content-Type` of a request is JSON. */
export const isJson = ({ headers }: Request) =>
  /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(headers.get('content-type') ?? '')

/** Tells whether the `Content-Type` of a request is a multipart form. */
export const isForm = ({ headers }: Request) => /^multipart\/form-data\s*;/i.test(headers.get('content-type') ?? '')

export const malformedBody = () =>
  new Problem(400, 'MALFORMED_BODY', 'The body is not JSON. Check its quotes, commas and brackets.')

/**
 * Returns the value of a JSON text.
 * @throws SyntaxError when the text is not JSON, 400 INVALID_INPUT when the value cannot be stored
 */
export const parseJson = (text: string): unknown => requireStorable(JSON.parse(text))

/** Returns the value unchanged. @throws 400 INVALID_INPUT when the value cannot be stored */
export function requireStorable<T>(value: T): T {
  assertStorable(value, MAX_DEPTH)
  return value
}

/** Tells whether a value that did not come in a request could be stored. */
export function isStorable(value: unknown): boolean {
  try {
    requireStorable(value)
    return true
  } catch {
    return false
  }
}

/** Returns a text from outside without the characters that no engine can store. */
export const toStorableText = (text: string): string => text.replaceAll('\0', '').toWellFormed()

let incomingBodies = 0

/** Returns the number of bodies that are being received. A server that stops waits for them only briefly. */
export const countIncomingBodies = () => incomingBodies

async function trackIncoming<T>(body: Promise<T>): Promise<T> {
  incomingBodies++
  return body.finally(() => incomingBodies--)
}

/**
 * Returns the text of a request's body, or undefined when it has no bytes.
 * @throws 413 BODY_TOO_LARGE beyond `limit` bytes
 */
export async function readText(request: Request, limit: number): Promise<string | undefined> {
  const body = await readTextOrBytes(request, limit)
  return body instanceof Uint8Array ? decodeBodyText(body) : body
}

/** Returns the text of a body, or the bytes of a large one, whose decoding would hold the thread; undefined without bytes. */
async function readTextOrBytes(
  request: Request,
  limit: number,
  inspector: BodyInspector = {},
): Promise<string | Uint8Array | undefined> {
  const length = requireContentLength(request, limit)
  if (length === 0) return
  if (length) inspector.onBytes?.(length, length)
  const bytes = await readArriving(request, length, limit, inspector)
  if (!bytes.length) return
  assertUtf8Charset(request.headers.get('content-type'))
  return bytes.length > SLICED_BODY_LENGTH ? bytes : decodeBodyText(bytes)
}

/** Returns the bytes of a body whose length may be known. */
function readArriving(request: Request, length: number | undefined, limit: number, inspector: BodyInspector) {
  if (length === undefined) return trackIncoming(readCounted(openBody(request)!, limit, inspector))
  if (length > UNWATCHED_BODY_LENGTH) return trackIncoming(readAnnounced(openBody(request)!, length, inspector))
  assertNotEncoded(request)
  return trackIncoming(withinPatience(request.bytes()))
}

/** Returns the bytes of a request's body as they were sent. @throws 413 BODY_TOO_LARGE beyond `limit` bytes */
export async function readBytes(request: Request, limit: number): Promise<Uint8Array> {
  const length = requireContentLength(request, limit)
  return length === 0 ? new Uint8Array() : readArriving(request, length, limit, {})
}

/** Returns the length of a body in bytes, or undefined when it is not announced. @throws 413 BODY_TOO_LARGE */
function requireContentLength({ body, headers }: Request, limit: number): number | undefined {
  if (!body) return 0
  const length = headers.get('content-length')
  if (Number(length) > limit) throw bodyTooLarge(limit)
  return length ? Number(length) : undefined
}

const BYTES_PER_TURN = 128 << 10 // a fast sender would otherwise keep the thread receiving for ten ms and more

/** Returns a function that counts received bytes, and lets others have the thread after some of them. */
function createPacer(body: IncomingBody, { waitForTurn }: BodyInspector): (bytes: number) => Promise<void> {
  let received = 0
  return async (bytes) => {
    received += bytes
    if (received < BYTES_PER_TURN) return
    received = 0
    await yieldToEventLoop()
    try {
      await waitForTurn?.()
    } catch (error) {
      body.cancel()
      throw error
    }
  }
}

/** Reads a large body, and copies it as it arrives: to join it at its end would hold the thread. */
async function readAnnounced(body: IncomingBody, length: number, inspector: BodyInspector): Promise<Uint8Array> {
  const bytes = new Uint8Array(length)
  let size = 0
  const pace = createPacer(body, inspector)
  for (;;) {
    const { value } = await body.read()
    if (!value) return bytes.subarray(0, size)
    inspector.onChunk?.(value.byteLength)
    if (size < length) bytes.set(value.subarray(0, length - size), size)
    size += value.byteLength
    await pace(value.byteLength)
  }
}

/** Reads a body of unannounced length and counts its bytes as they arrive. */
async function readCounted(body: IncomingBody, limit: number, inspector: BodyInspector): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  const pace = createPacer(body, inspector)
  for (;;) {
    const { value } = await body.read()
    if (!value) return Buffer.concat(chunks)
    size += value.byteLength
    try {
      if (size > limit) throw bodyTooLarge(limit)
      inspector.onBytes?.(size, limit)
      inspector.onChunk?.(value.byteLength)
    } catch (error) {
      body.cancel()
      throw error
    }
    chunks.push(value)
    await pace(value.byteLength)
  }
}

const bodyTooLarge = (limit: number) =>
  new Problem(413, 'BODY_TOO_LARGE', `The body is too large: at most ${limit} bytes are accepted.`)

/**
 * @throws 400 INVALID_INPUT for a value that no engine can store, or that is nested too deeply for recursive functions
 */
function assertStorable(value: unknown, depth: number, assertInner = assertStorable): void {
  if (typeof value === 'string') {
    if (value.includes('\0')) throw invalidBody('Text must not contain the character U+0000.')
    if (!value.isWellFormed()) throw invalidBody('Text must not contain an unpaired surrogate.')
  } else if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw invalidBody('A number is too large.')
  } else if (value !== null && typeof value === 'object') {
    if (depth === 0) throw invalidBody(TOO_DEEP_MESSAGE)
    // `for … in` would make a text of each index.
    if (Array.isArray(value)) for (const item of value) assertInner(item, depth - 1)
    else assertPropertiesStorable(value, depth, assertInner)
  }
}

// One function for all, because an object may be checked again, and may not get another one.
const describeObject = () => '{…}'

function assertPropertiesStorable(value: object, depth: number, assertInner: typeof assertStorable) {
  // String conversion would fail otherwise, because this `toString` is not a function.
  if (Object.hasOwn(value, 'toString')) Object.defineProperty(value, Symbol.toPrimitive, { value: describeObject })
  for (const key in value) {
    if (key === '__proto__') throw invalidBody('A property must not be named "__proto__".')
    assertStorable(key, depth)
    assertInner(value[key as keyof typeof value], depth - 1)
  }
}

const VALUES_PER_SLICE = 10_000

/** Checks a large value like `assertStorable`. Its lists and objects wait until there is time for them. */
async function assertStorableInSlices(value: unknown, runSlice: RunSlice): Promise<void> {
  const waiting: { value: unknown; depth: number }[] = [{ value, depth: MAX_DEPTH }]
  let count = 0
  const assertInner = (inner: unknown, depth: number) => {
    count++
    if (typeof inner === 'object' && inner !== null) waiting.push({ value: inner, depth })
    else assertStorable(inner, depth)
  }
  const checkSlice = () => {
    for (count = 0; count < VALUES_PER_SLICE; count++) {
      const next = waiting.pop()
      if (!next) return
      assertStorable(next.value, next.depth, assertInner)
    }
  }
  while (waiting.length) await runSlice(checkSlice)
}

const TOO_DEEP_MESSAGE = `The body is nested more than ${MAX_DEPTH} levels deep.`

const invalidBody = (message: string) =>
  new Problem(400, 'INVALID_INPUT', message, { details: [{ path: '', message }] })
